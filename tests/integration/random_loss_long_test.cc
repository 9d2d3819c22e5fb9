// SPDX-License-Identifier: Apache-2.0
// Many random losses with a new seed in each run.
#include "random_loss.h"

namespace baton::testing {
namespace {

TEST_F(RandomLossTest, EveryAnswerIsTheUndisturbedOneAndNothingIsLeftBehind) {
  Disturb(/*rounds=*/16, /*requests=*/60, /*seed=*/std::random_device()());
}

}  // namespace
}  // namespace baton::testing
