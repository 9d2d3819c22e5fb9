// Who is granted pages and a slot, and when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "receiver_fixture.h"

namespace baton::handoff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(ReceiverTest, NobodyWaitsForWhatASilentPeersGrantShares) {
  pages_.SetCached({'a'}, PageId{20});
  ASSERT_OK(receiver_.Open(Key(1)));
  From(kAnn, Reserve{Key(1), 3, {{'a'}}});  // 4 pages, of which 1 is shared
  Silent(kAnn);
  EXPECT_THAT(Reserving(kBob, 2, 6), ElementsAre("2:Refused(quarantined)", "2:failed"));
}

TEST_F(ReceiverTest, ServesWritersInOrderOfArrival) {
  Reserving(kAnn, 1, 8);
  EXPECT_THAT(Reserving(kBob, 2, 8), ElementsAre("2:Queued"));
  EXPECT_THAT(Reserving(kAnn, 3, 8), ElementsAre("3:Queued"));
  EXPECT_THAT(From(kAnn, Aborted{Key(1), Cause::kFinished}), ElementsAre("1:finished", "2:Granted"));
  EXPECT_THAT(From(kBob, Aborted{Key(2), Cause::kCancelled}), ElementsAre("2:failed", "3:Granted"));
}

TEST_F(ReceiverTest, PassesOneThatWaitsMaxBypassTimesAndNotOnceMore) {
  Reserving(kAnn, 1, 2);                                         // 3 pages, 7 left
  EXPECT_THAT(Reserving(kAnn, 2, 8), ElementsAre("2:Queued"));   // 9 pages
  EXPECT_THAT(Reserving(kBob, 3, 1), ElementsAre("3:Granted"));  // passes once
  EXPECT_THAT(Reserving(kBob, 4, 1), ElementsAre("4:Granted"));  // passes twice
  EXPECT_THAT(Reserving(kBob, 5, 1), ElementsAre("5:Queued"));   // 3 pages are free, but no more
  EXPECT_THAT(From(kBob, Aborted{Key(3), Cause::kCancelled}), ElementsAre("3:failed"));
  EXPECT_THAT(From(kBob, Aborted{Key(4), Cause::kCancelled}), ElementsAre("4:failed"));
  EXPECT_THAT(From(kAnn, Aborted{Key(1), Cause::kCancelled}), ElementsAre("1:failed", "2:Granted"));
  EXPECT_THAT(From(kAnn, Aborted{Key(2), Cause::kCancelled}), ElementsAre("2:failed", "5:Granted"));
}

TEST_F(ReceiverTest, EveryReservationThatIsPassedCountsIt) {
  Reserving(kAnn, 1, 2);                                         // 3 pages, 7 left
  EXPECT_THAT(Reserving(kAnn, 2, 8), ElementsAre("2:Queued"));   // 9 pages
  EXPECT_THAT(Reserving(kAnn, 3, 8), ElementsAre("3:Queued"));   // 9 pages
  EXPECT_THAT(Reserving(kBob, 4, 1), ElementsAre("4:Granted"));  // passes both
  EXPECT_THAT(Reserving(kBob, 5, 1), ElementsAre("5:Granted"));
  EXPECT_THAT(On(Receiver::Close{Key(2)}), ElementsAre("2:Refused(revoked)"));
  EXPECT_THAT(Reserving(kBob, 6, 1), ElementsAre("6:Queued")) << "3 was passed twice as well";
}

TEST_F(ReceiverTest, NobodyIsPassedByThoseThatComeInTheirOrder) {
  ReceiverConfig config = Config();
  config.max_bypass = 1;
  receiver_ = Receiver(config);
  SetUp();
  Reserving(kAnn, 1, 9);
  Reserving(kAnn, 2, 1);
  Reserving(kBob, 3, 1);
  EXPECT_THAT(From(kAnn, Aborted{Key(1), Cause::kFinished}), ElementsAre("1:finished", "2:Granted", "3:Granted"));
}

TEST_F(ReceiverTest, AWriterThatReturnsWithManyPassesNobodyMoreOftenThanThat) {
  Reserving(kAnn, 1, 2);                                        // 3 pages
  Reserving(kAnn, 2, 6);                                        // 7 pages: none is left
  EXPECT_THAT(Reserving(kAnn, 3, 8), ElementsAre("3:Queued"));  // 9 pages
  for (uint64_t request = 4; request < 7; ++request) Reserving(kBob, request, 1);
  Silent(kBob);
  EXPECT_THAT(From(kAnn, Aborted{Key(2), Cause::kFinished}), ElementsAre("2:finished"));
  EXPECT_THAT(Alive(kBob), ElementsAre("4:Granted", "5:Granted")) << "6 would fit, but passes 3 once more";
  EXPECT_THAT(On(Receiver::PagesFreed{}), IsEmpty());
}

TEST_F(ReceiverTest, GrantsNeedABatchSlot) {
  ReceiverConfig config = Config();
  config.max_sequences = 2;
  receiver_ = Receiver(config);
  SetUp();
  On(Receiver::LocalSequences{1});
  Reserving(kAnn, 1, 1);
  const Granted grant = LastGrant();
  EXPECT_THAT(Reserving(kAnn, 2, 1), ElementsAre("2:Queued"));
  EXPECT_THAT(From(kAnn, CommitOf(grant)), ElementsAre("1:Committed", "1:received")) << "it keeps its slot";
  EXPECT_THAT(On(Receiver::LocalSequences{0}), ElementsAre("2:Granted"));
  EXPECT_THAT(Reserving(kAnn, 3, 1), ElementsAre("3:Queued"));
  EXPECT_THAT(Reserving(kAnn, 4, 1), ElementsAre("4:Queued"));
  EXPECT_THAT(On(Receiver::Close{Key(1)}), ElementsAre("3:Granted")) << "one slot, one grant";
}

TEST_F(ReceiverTest, NothingIsGrantedBeforeALocalSequenceThatIsNext) {
  On(Receiver::LocalSequences{.count = 0, .next = true});
  EXPECT_THAT(Reserving(kAnn, 1, 1), ElementsAre("1:Queued"));
  EXPECT_THAT(On(Receiver::PagesFreed{}), IsEmpty());
  EXPECT_THAT(On(Receiver::LocalSequences{.count = 1, .next = false}), ElementsAre("1:Granted"));
}

TEST_F(ReceiverTest, AReservationIsPassedAFewTimesByWhatever) {
  Reserving(kBob, 1, 2);                                        // 3 pages
  EXPECT_THAT(Reserving(kAnn, 2, 7), ElementsAre("2:Queued"));  // 8 pages
  On(Receiver::LocalSequences{.count = 1, .next = false});
  EXPECT_FALSE(receiver_.queued_first());
  EXPECT_THAT(Reserving(kBob, 3, 1), ElementsAre("3:Granted"));  // max_bypass is 2
  EXPECT_TRUE(receiver_.queued_first());
  EXPECT_THAT(Reserving(kBob, 4, 1), ElementsAre("4:Queued"));
}

TEST_F(ReceiverTest, HowOftenAReservationWasPassedEndsWithIt) {
  Reserving(kBob, 1, 2);
  Reserving(kAnn, 2, 7);
  On(Receiver::LocalSequences{.count = 2, .next = false});
  EXPECT_TRUE(receiver_.queued_first());
  On(Receiver::Close{Key(2)});
  EXPECT_FALSE(receiver_.queued_first());
  EXPECT_THAT(Reserving(kAnn, 3, 7), ElementsAre("3:Queued"));
  EXPECT_FALSE(receiver_.queued_first()) << "nothing has passed this one";
}

TEST_F(ReceiverTest, OnlyTheReservationThatMayNotBePassedComesBeforeALocalSequence) {
  Reserving(kBob, 1, 9);  // all pages
  for (uint64_t request = 2; request < 6; ++request) Reserving(kAnn, request, 1);
  On(Receiver::LocalSequences{.count = 2, .next = true});
  EXPECT_TRUE(receiver_.queued_first());
  EXPECT_THAT(From(kBob, Aborted{Key(1), Cause::kFinished}), ElementsAre("1:finished", "2:Granted"));
  EXPECT_FALSE(receiver_.queued_first());
  EXPECT_THAT(On(Receiver::LocalSequences{.count = 3, .next = false}),
              ElementsAre("3:Granted", "4:Granted", "5:Granted"));
}

TEST_F(ReceiverTest, LocalSequencesMayNotPassAReservationForEver) {
  Reserving(kBob, 1, 2);                                        // 3 pages
  EXPECT_THAT(Reserving(kAnn, 2, 7), ElementsAre("2:Queued"));  // 8 pages
  On(Receiver::LocalSequences{.count = 1, .next = true});
  EXPECT_FALSE(receiver_.queued_first());
  On(Receiver::LocalSequences{.count = 0, .next = true});  // it ended
  EXPECT_FALSE(receiver_.queued_first());
  On(Receiver::LocalSequences{.count = 1, .next = true});  // max_bypass is 2
  EXPECT_TRUE(receiver_.queued_first());
  Silent(kAnn);
  EXPECT_FALSE(receiver_.queued_first()) << "nobody waits for one that is silent";
  Alive(kAnn);
  EXPECT_THAT(From(kBob, Aborted{Key(1), Cause::kFinished}), ElementsAre("1:finished", "2:Granted"));
  EXPECT_FALSE(receiver_.queued_first());
}

TEST_F(ReceiverTest, GrantsLeaveAPagePerSequenceToGrowInto) {
  ReceiverConfig config = Config();
  config.growth_watermark_pages = 2;
  receiver_ = Receiver(config);
  SetUp();
  EXPECT_THAT(Reserving(kAnn, 1, 2), ElementsAre("1:Granted")) << "7 pages stay";
  EXPECT_THAT(Reserving(kAnn, 2, 6), ElementsAre("2:Queued")) << "7 pages are free, but one sequence needs one";
  EXPECT_THAT(From(kAnn, CancelReserve{Key(2)}), ElementsAre("2:failed"));
  EXPECT_THAT(Reserving(kAnn, 3, 5), ElementsAre("3:Granted"));
}

TEST_F(ReceiverTest, AnEmptyWorkerTakesThePromptThatJustFits) {
  ReceiverConfig config = Config();
  config.growth_watermark_pages = 8;
  receiver_ = Receiver(config);
  SetUp();
  EXPECT_THAT(Reserving(kAnn, 1, 9), ElementsAre("1:Granted"));
  EXPECT_THAT(Reserving(kAnn, 2, 10), ElementsAre("2:Refused(too_large)", "2:failed"));
}

TEST_F(ReceiverTest, RefusesBeyondItsQueue) {
  Reserving(kAnn, 1, 9);
  for (uint64_t request = 2; request < 6; ++request) Reserving(kAnn, request, 1);
  EXPECT_THAT(Reserving(kBob, 6, 1), ElementsAre("6:Refused(overloaded)", "6:failed"));
  EXPECT_EQ(receiver_.counts().queued, 4);
}

TEST_F(ReceiverTest, ARevokedPeerLeavesTheQueue) {
  Reserving(kAnn, 1, 8);
  Reserving(kAnn, 2, 8);
  Reserving(kBob, 3, 8);
  EXPECT_THAT(Revoked(kAnn), ElementsAre("1:failed", "2:failed", "3:Granted"));
}

TEST_F(ReceiverTest, NobodyWaitsForPagesInQuarantine) {
  Reserving(kAnn, 1, 4);
  Reserving(kBob, 2, 8);
  EXPECT_THAT(Silent(kAnn), ElementsAre("2:Refused(quarantined)", "2:failed"));
  EXPECT_THAT(Reserving(kBob, 3, 4), ElementsAre("3:Granted"));
}

TEST_F(ReceiverTest, ASilentPeersReservationNeitherAdvancesNorHoldsOthersUp) {
  Reserving(kBob, 1, 8);
  Reserving(kAnn, 2, 1);
  Silent(kAnn);
  EXPECT_THAT(From(kBob, Aborted{Key(1), Cause::kFinished}), ElementsAre("1:finished"));
  for (uint64_t request = 3; request < 7; ++request) {
    EXPECT_THAT(Reserving(kBob, request, 1), ElementsAre(absl::StrCat(request, ":Granted")));
  }
  EXPECT_THAT(Alive(kAnn), ElementsAre("2:Granted"));
}

}  // namespace
}  // namespace baton::handoff
