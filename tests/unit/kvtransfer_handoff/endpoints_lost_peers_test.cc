// SPDX-License-Identifier: Apache-2.0
// Peers that die, fall silent or are started anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "endpoints_fixture.h"

namespace baton::handoff_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Ne;

enum class Stage { kQueued, kGranted, kPut, kFlushing };

class LostPeerTest : public EndpointsTest, public ::testing::WithParamInterface<Stage> {
 protected:
  // Brings request 2 to the stage. Request 1 holds pages meanwhile.
  void Reach() {
    StartDecode({.pages = GetParam() == Stage::kQueued ? 6u : 16u});
    StartPrefill();
    HandOver(1);
    prefill_->transport().HoldPuts();
    if (GetParam() == Stage::kQueued) {
      OpenAndReserve(2);
      ASSERT_NE(Prefill("queued 2"), "");
      return;
    }
    GetGranted(2);
    if (GetParam() == Stage::kGranted) return;
    prefill_->Put(Key(2), kTokens);
    if (GetParam() == Stage::kFlushing) prefill_->sender().Commit(Key(2), {42});
  }
};

TEST_P(LostPeerTest, DecodeFreesWhatAKilledWriterHeld) {
  Reach();
  prefill_->transport().Kill();
  EXPECT_THAT(Decode("failed 2"), HasSubstr("lost"));
  decode_->Close(Key(2));
  decode_->Close(Key(1));
  EXPECT_TRUE(Eventually([&] { return decode_->IsEmpty(); }));
}

TEST_P(LostPeerTest, PrefillFreesWhatAKilledReceiverLeaves) {
  Reach();
  decode_->transport().Kill();
  EXPECT_THAT(Prefill("failed 2"), Ne(""));
  EXPECT_EQ(prefill_->diary().Count("failed 2"), 1);
  EXPECT_TRUE(Eventually([&] { return prefill_->IsEmpty(); }));
}

INSTANTIATE_TEST_SUITE_P(AtEveryStage, LostPeerTest,
                         ::testing::Values(Stage::kQueued, Stage::kGranted, Stage::kPut, Stage::kFlushing));

TEST_F(EndpointsTest, ASilentWritersPagesAreQuarantinedUntilItReturns) {
  Start();
  GetGranted(1);
  EXPECT_FALSE(decode_->ledger().Grow(13).ok()) << "4 of 16 pages are granted";
  prefill_->transport().Pause();
  EXPECT_TRUE(Eventually([&] { return decode_->pool().counts().quarantined == 4; }));
  EXPECT_NE(Decode("local wakes"), "") << "a local sequence may wait in vain";
  prefill_->transport().Resume();
  EXPECT_TRUE(Eventually([&] { return decode_->pool().counts().quarantined == 0; }));
  prefill_->Put(Key(1), kTokens);
  prefill_->sender().Commit(Key(1), {42});
  ASSERT_NE(Decode("received 1"), "");
  decode_->Close(Key(1));
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, ASilentWriterThatIsRevokedLosesItsPagesAndLearnsOfItWhenItReturns) {
  DecodeSide::Settings settings;
  settings.transport.peer_timeout = absl::Milliseconds(500);
  StartDecode(std::move(settings));
  StartPrefill();
  GetGranted(1);
  prefill_->transport().HoldPuts();
  prefill_->Put(Key(1), kTokens);
  prefill_->transport().Pause();
  EXPECT_THAT(Decode("failed 1"), HasSubstr("lost"));
  EXPECT_TRUE(Eventually([&] { return decode_->IsEmpty(); }));
  prefill_->transport().Resume();
  EXPECT_THAT(Prefill("failed 1"), HasSubstr("lost"));
  prefill_->transport().ReleasePuts();
  ExpectNothingHeld();
  HandOver(2);  // over a new connection
  decode_->Close(Key(2));
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, ASilentTargetIsRefusedAtOnce) {
  Start();
  GetGranted(1);
  decode_->transport().Pause();
  EXPECT_TRUE(Eventually([&] {
    static uint64_t request = 100;
    prefill_->Reserve(Key(++request), decode_->target(), kTokens);
    const bool refused = prefill_->diary().Count("failed") > 0;
    prefill_->Abort(Key(request));
    return refused;
  }));
  EXPECT_THAT(Prefill("failed"), HasSubstr("silent"));
  decode_->transport().Resume();
  prefill_->Abort(Key(1));
  ASSERT_NE(Prefill("released 1"), "");
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, AReservationThatIsNoMessageFailsAlone) {
  Start();
  GetGranted(1);
  prefill_->Reserve(Key(2), decode_->target(), kTokens, std::vector<PageHash>(200000));
  const std::string limit = absl::StrCat("limit is ", Options().max_message_bytes);
  EXPECT_THAT(Prefill("failed 2"), AllOf(HasSubstr("too_large (fault of client)"), HasSubstr(limit)));
  prefill_->Put(Key(1), kTokens);
  prefill_->sender().Commit(Key(1), {42});
  EXPECT_NE(Prefill("done 1"), "") << "the connection is still there";
  decode_->Close(Key(1));
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, ARestartedWriterTakesThePlaceOfItsFormerSelf) {
  Start();
  GetGranted(1);
  // The former process is stuck, not dead: its connection stays, silent soon.
  prefill_->transport().Pause();
  absl::SleepFor(5 * Options().silent_after);
  std::unique_ptr<PrefillSide> former =
      std::exchange(prefill_, std::make_unique<PrefillSide>(PrefillSide::Settings{
                                  .identity = {.worker_id = "prefill", .epoch = 3, .numerics_id = "numerics"}}));
  HandOver(2);
  EXPECT_THAT(Decode("failed 1"), HasSubstr("lost"));
  former->transport().Resume();
  EXPECT_NE(former->diary().WaitFor("failed 1"), "");
  decode_->Close(Key(2));
  ExpectNothingHeld();
}

}  // namespace
}  // namespace baton::handoff_test
