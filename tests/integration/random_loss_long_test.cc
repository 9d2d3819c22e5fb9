// Many random moments, others each time.
#include "random_loss.h"

namespace baton::testing {
namespace {

TEST_F(RandomLossTest, EveryAnswerIsTheUndisturbedOneAndNothingIsLeftBehind) {
  Disturb(/*rounds=*/16, /*requests=*/60, /*seed=*/std::random_device()());
}

}  // namespace
}  // namespace baton::testing
