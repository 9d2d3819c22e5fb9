// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/endpoints/endpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "endpoints_fixture.h"

namespace baton::handoff_test {
namespace {

using ::baton::testing::Fails;
using ::testing::HasSubstr;

TEST_F(EndpointsTest, MovesEveryPageOfAPrompt) {
  Start();
  HandOver(1);
  const uint64_t bytes = 3 * kLayout.page_bytes();
  EXPECT_EQ(Prefill("done 1"), absl::StrCat("done 1: ", bytes, " bytes by inproc"));
  EXPECT_EQ(decode_->receiver().load().received, 1);
  EXPECT_EQ(decode_->pool().counts().used, 4u) << "and a page to grow into";
  decode_->Close(Key(1));
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, UsesOneConnectionForManyHandoffs) {
  Start();
  for (uint64_t request = 1; request <= 20; ++request) {
    HandOver(request);
    decode_->Close(Key(request));
  }
  EXPECT_EQ(prefill_->connects(), 1);
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, QueuesAReservationUntilPagesAreThere) {
  StartDecode({.pages = 6});
  StartPrefill();
  HandOver(1);
  OpenAndReserve(2);
  ASSERT_NE(Prefill("queued 2"), "");
  EXPECT_EQ(decode_->receiver().load().queued, 1);
  decode_->Close(Key(1));
  ASSERT_NE(Prefill("granted 2"), "");
  prefill_->Abort(Key(2));
  ASSERT_NE(Prefill("released 2"), "");
  ASSERT_NE(Decode("failed 2"), "");
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, ALocalPromptThatLeavesLetsAReservationInAtOnce) {
  StartDecode({.capacity = {.max_sequences = 1}});
  StartPrefill();
  CapacityLedger& ledger = decode_->ledger();
  constexpr auto kLocal = CapacityLedger::Claimant::kLocalPrompt;
  ASSERT_OK(ledger.Enqueue({.claimant = kLocal, .age = {absl::Now(), Key(7)}, .pages = 1, .names = {}}));
  EXPECT_EQ(ledger.TakeDecisions(kLocal).size(), 1u);
  OpenAndReserve(1);
  ASSERT_NE(Prefill("queued 1"), "");
  ledger.Leave(kLocal, Key(7));
  EXPECT_EQ(decode_->receiver().load().granted, 1) << "on the thread that left";
  ASSERT_NE(Prefill("granted 1"), "");
  prefill_->Abort(Key(1));
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, GrantsByTheAgeOfTheRequestNotByTheOrderOfReservations) {
  StartDecode({.capacity = {.max_sequences = 1}});
  StartPrefill();
  HandOver(1);
  const absl::Time now = absl::Now();
  EXPECT_OK(decode_->receiver().OpenAttempt(Key(2), now));
  EXPECT_OK(decode_->receiver().OpenAttempt(Key(3), now - absl::Seconds(1)));
  for (const uint64_t request : {2, 3}) {
    prefill_->Reserve(Key(request), decode_->target(), kTokens);
    ASSERT_NE(Prefill(absl::StrCat("queued ", request)), "");
  }
  decode_->Close(Key(1));
  ASSERT_NE(Prefill("granted 3"), "");
  EXPECT_EQ(prefill_->diary().Count("granted 2"), 0);
  decode_->Close(Key(2));
  prefill_->Abort(Key(3));
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, AFinishedRequestReleasesEverything) {
  Start();
  GetGranted(1);
  prefill_->Put(Key(1), kTokens);
  prefill_->Abort(Key(1), /*finished=*/true);
  ASSERT_NE(Prefill("released 1"), "");
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, RefusalsReachBothSides) {
  StartDecode({.pages = 3});
  StartPrefill();
  prefill_->Reserve(Key(9), decode_->target(), kTokens);
  EXPECT_THAT(Prefill("failed 9"), HasSubstr("unknown_attempt (fault of nobody)"));
  OpenAndReserve(1);
  EXPECT_THAT(Prefill("failed 1"), HasSubstr("too_large (fault of client)"));
  EXPECT_THAT(Decode("failed 1"), HasSubstr("4 pages"));
  decode_->receiver().StartDraining();
  EXPECT_TRUE(Fails(decode_->receiver().OpenAttempt(Key(2), absl::Now()), absl::StatusCode::kUnavailable, "draining"));
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, AnAttemptIsReservedForOnce) {
  Start();
  GetGranted(1);
  prefill_->Reserve(Key(1), decode_->target(), kTokens);
  EXPECT_THAT(Prefill("failed 1"), HasSubstr("revoked (fault of nobody)"));
  prefill_->Abort(Key(1));
  ASSERT_NE(Prefill("released 1"), "");
  ExpectNothingHeld();
}

// ------------------------------------------------------------------------------------------------ cancels

TEST_F(EndpointsTest, CancelBeforeTheConnectionIsThere) {
  Start();
  decode_->transport().Pause();  // it does not answer
  OpenAndReserve(1);
  EXPECT_TRUE(Eventually([&] { return prefill_->connects() == 1; }));
  prefill_->Abort(Key(1));
  ASSERT_NE(Prefill("released 1"), "");
  decode_->transport().Resume();
  decode_->Close(Key(1));
  HandOver(2);  // over the connection that came of it
  EXPECT_EQ(prefill_->connects(), 1);
  decode_->Close(Key(2));
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, CancelWhileQueued) {
  StartDecode({.pages = 6});
  StartPrefill();
  HandOver(1);
  OpenAndReserve(2);
  ASSERT_NE(Prefill("queued 2"), "");
  prefill_->Abort(Key(2));
  ASSERT_NE(Prefill("released 2"), "");
  ASSERT_NE(Decode("failed 2"), "");
  EXPECT_EQ(decode_->receiver().load().queued, 0);
  decode_->Close(Key(1));
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, CancelWhileGranted) {
  Start();
  GetGranted(1);
  prefill_->Abort(Key(1));
  ASSERT_NE(Prefill("released 1"), "");
  ASSERT_NE(Decode("failed 1"), "");
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, CancelHoldsPagesOfBothSidesUntilThePutsAreDone) {
  Start();
  GetGranted(1);
  prefill_->transport().HoldPuts();
  prefill_->Put(Key(1), kTokens);
  prefill_->Abort(Key(1));
  decode_->Close(Key(1));
  // The cancel has been through both machines and changed nothing about the pages.
  EXPECT_TRUE(Eventually([&] { return decode_->receiver().load().revoking == 1; }));
  EXPECT_EQ(prefill_->diary().Count("released"), 0);
  EXPECT_EQ(prefill_->pool().counts().used, 3u);
  EXPECT_EQ(decode_->pool().counts().used, 4u);
  prefill_->transport().ReleasePuts();
  ASSERT_NE(Prefill("released 1"), "");
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, CancelAfterCommit) {
  Start();
  GetGranted(1);
  prefill_->Put(Key(1), kTokens);
  prefill_->sender().Commit(Key(1), {42});
  prefill_->Abort(Key(1));
  ASSERT_NE(Prefill("released 1"), "");
  decode_->Close(Key(1));
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, CancelOfAnUnknownAttemptReleasesAtOnce) {
  Start();
  prefill_->Abort(Key(1));
  EXPECT_EQ(prefill_->diary().Count("released 1"), 1);
}

TEST_F(EndpointsTest, RevokeMidWriteFreesNothingBeforeTheFence) {
  Start();
  GetGranted(1);
  prefill_->transport().HoldPuts();
  prefill_->Put(Key(1), kTokens);
  decode_->Close(Key(1));
  EXPECT_EQ(decode_->receiver().load().revoking, 1);
  EXPECT_EQ(decode_->pool().counts().used, 4u);
  EXPECT_EQ(prefill_->diary().Count("failed"), 0);
  prefill_->transport().ReleasePuts();
  EXPECT_THAT(Prefill("failed 1"), HasSubstr("revoked"));
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, RevokeWhileQueuedRefuses) {
  StartDecode({.pages = 6});
  StartPrefill();
  HandOver(1);
  OpenAndReserve(2);
  ASSERT_NE(Prefill("queued 2"), "");
  decode_->Close(Key(2));
  EXPECT_THAT(Prefill("failed 2"), HasSubstr("closed"));
  decode_->Close(Key(1));
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, ACommitWithoutAllPagesIsDropped) {
  Start();
  GetGranted(1);
  prefill_->sender().Commit(Key(1), {42});
  EXPECT_THAT(Prefill("failed 1"), HasSubstr("tag"));
  EXPECT_THAT(Decode("failed 1"), HasSubstr("internal (fault of pair)"));
  ExpectNothingHeld();
}

}  // namespace
}  // namespace baton::handoff_test
