// SPDX-License-Identifier: Apache-2.0
// A few random losses with a fixed seed.
#include "random_loss.h"

namespace baton::testing {
namespace {

TEST_F(RandomLossTest, EveryAnswerIsTheUndisturbedOneAndNothingIsLeftBehind) {
  Disturb(/*rounds=*/4, /*requests=*/24, /*seed=*/1);
}

}  // namespace
}  // namespace baton::testing
