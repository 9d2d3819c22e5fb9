#include "kvtransfer/handoff/receiver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvtransfer/handoff/seen_attempts.h"
#include "tests/status_matchers.h"

namespace baton::handoff {
namespace {

using ::baton::testing::Fails;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr PeerId kAnn{1};
constexpr PeerId kBob{2};

AttemptKey Key(uint64_t request, uint32_t attempt = 1) { return {.request = {0, request}, .attempt = attempt}; }

class FakePages final : public PageSource {
 public:
  explicit FakePages(int total) : total_(total) {}
  int free_pages() const { return total_ - int(used_.size()); }
  GrantedPages Allocate(int count, std::span<const PageHash> names, int leave) override {
    GrantedPages granted;
    for (const PageHash& name : names) {
      if (!cached_.contains(name)) break;
      granted.pages.push_back(cached_.at(name));
    }
    granted.cached = int(granted.pages.size());
    EXPECT_LT(granted.cached, count);
    if (free_pages() < count - granted.cached + leave) return {};
    for (uint32_t i = 0; int(granted.pages.size()) < count; ++i) {
      if (used_.insert(i).second) granted.pages.push_back(PageId{i});
    }
    shared_ += granted.cached;
    return granted;
  }
  void Release(std::span<const PageId> pages) override {
    for (PageId page : pages) {
      if (IsCached(page)) {
        --shared_;
        continue;
      }
      EXPECT_EQ(used_.erase(ToIndex(page)), 1u);
      quarantined_.erase(ToIndex(page));
    }
  }
  void SetQuarantined(std::span<const PageId> pages, bool quarantined) override {
    for (PageId page : pages) {
      EXPECT_FALSE(IsCached(page)) << "others read it";
      if (quarantined) {
        quarantined_.insert(ToIndex(page));
      } else {
        quarantined_.erase(ToIndex(page));
      }
    }
  }
  int quarantined() const { return int(quarantined_.size()); }
  int shared() const { return shared_; }  // how often cached pages are held
  // `page`, which is not of `total`, holds what `name` says.
  void SetCached(const PageHash& name, PageId page) { cached_[name] = page; }

 private:
  bool IsCached(PageId page) const {
    return std::any_of(cached_.begin(), cached_.end(), [&](const auto& entry) { return entry.second == page; });
  }

  int total_;
  int shared_ = 0;
  std::map<PageHash, PageId> cached_;
  std::set<uint32_t> used_;
  std::set<uint32_t> quarantined_;
};

// What comes back, short: "<request>:<message or action>".
std::string Short(const Receiver::Action& action) {
  if (const auto* send = std::get_if<Receiver::Send>(&action)) {
    const uint64_t request = KeyOf(send->message).request.low;
    if (std::holds_alternative<Queued>(send->message)) return absl::StrCat(request, ":Queued");
    if (std::holds_alternative<Granted>(send->message)) return absl::StrCat(request, ":Granted");
    if (std::holds_alternative<Revoke>(send->message)) return absl::StrCat(request, ":Revoke");
    if (const auto* refused = std::get_if<Refused>(&send->message)) {
      return absl::StrCat(request, ":Refused(", Name(refused->reason), ")");
    }
    if (const auto* committed = std::get_if<Committed>(&send->message)) {
      return absl::StrCat(request, committed->error.empty() ? ":Committed" : ":Committed(error)");
    }
    return "a message of the writer's";
  }
  if (const auto* received = std::get_if<Receiver::Received>(&action)) {
    return absl::StrCat(received->key.request.low, ":received");
  }
  if (const auto* failed = std::get_if<Receiver::Failed>(&action)) {
    return absl::StrCat(failed->key.request.low, ":failed");
  }
  return absl::StrCat(std::get<Receiver::FinishedByWriter>(action).key.request.low, ":finished");
}

class ReceiverTest : public ::testing::Test {
 protected:
  // Pages of one token; a pool of ten.
  static ReceiverConfig Config() {
    ReceiverConfig config;
    config.layers = 2;
    config.page_tokens = 1;
    config.pages_total = 10;
    config.max_attempts = 100;
    config.max_sequences = 100;
    config.max_queue = 4;
    config.max_bypass = 2;
    config.growth_watermark_pages = 0;
    return config;
  }

  void SetUp() override {
    On(Receiver::PeerUp{kAnn});
    On(Receiver::PeerUp{kBob});
  }

  std::vector<std::string> On(const Receiver::Event& event) {
    last_ = receiver_.On(event, pages_);
    std::vector<std::string> names;
    for (const Receiver::Action& action : last_) names.push_back(Short(action));
    return names;
  }
  std::vector<std::string> From(PeerId peer, Message message) { return On(Receiver::From{peer, std::move(message)}); }
  // Opens attempt 1 of the request and reserves for it.
  std::vector<std::string> Reserving(PeerId peer, uint64_t request, int tokens) {
    EXPECT_OK(receiver_.Open(Key(request)));
    return From(peer, Reserve{Key(request), tokens, {}});
  }
  std::vector<std::string> Silent(PeerId peer) { return On(Receiver::PeerChanged{peer, PeerState::kSilent, {}}); }
  std::vector<std::string> Alive(PeerId peer) { return On(Receiver::PeerChanged{peer, PeerState::kAlive, {}}); }
  std::vector<std::string> Revoked(PeerId peer) {
    return On(Receiver::PeerChanged{peer, PeerState::kRevoked, absl::UnavailableError("died")});
  }
  Granted LastGrant() const {
    for (const Receiver::Action& action : last_) {
      const auto* send = std::get_if<Receiver::Send>(&action);
      if (send != nullptr && std::holds_alternative<Granted>(send->message)) return std::get<Granted>(send->message);
    }
    ADD_FAILURE() << "nothing was granted";
    return {};
  }
  // What the writer of `grant` says when it has put everything.
  static Commit CommitOf(const Granted& grant) {
    uint64_t sum = 0;
    for (int layer : {0, 1}) {
      for (const int index : grant.wanted) sum += BlockTag(layer, grant.pages[size_t(index)]);
    }
    const int tokens = int(grant.pages.size());
    return {grant.key, tokens, {5}, CommitTag(grant.key, tokens, sum)};
  }

  Receiver receiver_{Config()};
  FakePages pages_{10};
  std::vector<Receiver::Action> last_;
};

TEST_F(ReceiverTest, PagesThatAreHereAlreadyAreNeitherWantedNorWritable) {
  pages_.SetCached({'a'}, PageId{20});
  pages_.SetCached({'b'}, PageId{21});
  ASSERT_OK(receiver_.Open(Key(1)));
  EXPECT_THAT(From(kAnn, Reserve{Key(1), 4, {{'a'}, {'b'}, {'x'}}}), ElementsAre("1:Granted"));
  const Granted grant = LastGrant();
  ASSERT_EQ(grant.pages.size(), 4u);
  EXPECT_EQ(grant.pages[0], PageId{20});
  EXPECT_THAT(grant.wanted, ElementsAre(2, 3));
  EXPECT_FALSE(receiver_.MayWrite(kAnn, StreamOf(Key(1)), 20, 1));
  EXPECT_TRUE(receiver_.MayWrite(kAnn, StreamOf(Key(1)), ToIndex(grant.pages[2]), 1));

  Silent(kAnn);  // FakePages watches that no shared page is in quarantine
  EXPECT_EQ(pages_.quarantined(), 3);
  Alive(kAnn);
  EXPECT_THAT(From(kAnn, CommitOf(grant)), ElementsAre("1:Committed", "1:received"));
  EXPECT_EQ(std::get<Receiver::Received>(last_.back()).cached_pages, 2);
}

TEST_F(ReceiverTest, MoreHashesThanFullPagesAreNotBelieved) {
  for (const uint8_t name : {1, 2, 3}) pages_.SetCached({name}, PageId{uint32_t{20} + name});
  ASSERT_OK(receiver_.Open(Key(1)));
  EXPECT_THAT(From(kAnn, Reserve{Key(1), 2, {{1}, {2}, {3}}}), ElementsAre("1:Granted"));
  const Granted grant = LastGrant();
  EXPECT_EQ(grant.pages.size(), 2u);
  EXPECT_THAT(grant.wanted, IsEmpty());
  EXPECT_THAT(From(kAnn, CommitOf(grant)), ElementsAre("1:Committed", "1:received"));
  EXPECT_EQ(std::get<Receiver::Received>(last_.back()).pages.size(), 3u) << "one of its own to grow into";
}

TEST_F(ReceiverTest, ARevokedGrantLetsGoOfWhatIsSharedAtOnce) {
  pages_.SetCached({'a'}, PageId{20});
  ASSERT_OK(receiver_.Open(Key(1)));
  From(kAnn, Reserve{Key(1), 3, {{'a'}}});
  EXPECT_EQ(pages_.shared(), 1);
  Silent(kAnn);
  EXPECT_THAT(On(Receiver::Close{Key(1)}), ElementsAre("1:Revoke"));
  EXPECT_EQ(pages_.shared(), 0);
  EXPECT_EQ(pages_.quarantined(), 3) << "two pages of the prompt and one to grow into may still be written to";
  Revoked(kAnn);
  EXPECT_EQ(pages_.free_pages(), 10);
}

TEST_F(ReceiverTest, NobodyWaitsForWhatASilentPeersGrantShares) {
  pages_.SetCached({'a'}, PageId{20});
  ASSERT_OK(receiver_.Open(Key(1)));
  From(kAnn, Reserve{Key(1), 3, {{'a'}}});  // 4 pages, of which 1 is shared
  Silent(kAnn);
  EXPECT_THAT(Reserving(kBob, 2, 6), ElementsAre("2:Refused(queue full)", "2:failed"));
}

TEST_F(ReceiverTest, APromptThatIsHereAlreadyNeedsNoPut) {
  pages_.SetCached({'a'}, PageId{20});
  ASSERT_OK(receiver_.Open(Key(1)));
  EXPECT_THAT(From(kAnn, Reserve{Key(1), 1, {{'a'}}}), ElementsAre("1:Granted"));
  const Granted grant = LastGrant();
  EXPECT_THAT(grant.wanted, IsEmpty());
  EXPECT_THAT(From(kAnn, CommitOf(grant)), ElementsAre("1:Committed", "1:received"));
}

TEST_F(ReceiverTest, GrantsThePromptAndOnePageToGrowIntoAndHandsThemOverAtCommit) {
  EXPECT_THAT(Reserving(kAnn, 1, 3), ElementsAre("1:Granted"));
  const Granted grant = LastGrant();
  EXPECT_EQ(grant.pages.size(), 3u);
  EXPECT_THAT(grant.wanted, ElementsAre(0, 1, 2));
  EXPECT_EQ(pages_.free_pages(), 6);

  EXPECT_THAT(From(kAnn, CommitOf(grant)), ElementsAre("1:Committed", "1:received"));
  const auto& received = std::get<Receiver::Received>(last_.back());
  EXPECT_EQ(received.pages.size(), 4u);
  EXPECT_TRUE(std::equal(grant.pages.begin(), grant.pages.end(), received.pages.begin()));
  EXPECT_EQ(received.output, std::vector<TokenId>{5});
  EXPECT_EQ(pages_.free_pages(), 6) << "they are the caller's now";
  EXPECT_EQ(receiver_.counts().received, 1);
  EXPECT_THAT(On(Receiver::Close{Key(1)}), IsEmpty());
  EXPECT_EQ(receiver_.counts(), Receiver::Counts{});
}

TEST_F(ReceiverTest, AllowsWritesOnlyToTheGrantedPeerStreamAndPages) {
  Reserving(kAnn, 1, 3);  // pages 0 to 2, and 3 to grow into
  const StreamId stream = StreamOf(Key(1));
  EXPECT_TRUE(receiver_.MayWrite(kAnn, stream, 0, 3));
  EXPECT_TRUE(receiver_.MayWrite(kAnn, stream, 2, 1));
  EXPECT_FALSE(receiver_.MayWrite(kAnn, stream, 2, 2)) << "not the page to grow into";
  EXPECT_FALSE(receiver_.MayWrite(kBob, stream, 0, 1));
  EXPECT_FALSE(receiver_.MayWrite(kAnn, stream + 1, 0, 1));
  On(Receiver::Close{Key(1)});
  EXPECT_TRUE(receiver_.MayWrite(kAnn, stream, 0, 3)) << "what is under way may land until the fence";
  From(kAnn, Aborted{Key(1), AbortReason::kRevoked});
  EXPECT_FALSE(receiver_.MayWrite(kAnn, stream, 0, 1));
}

TEST_F(ReceiverTest, ServesWritersInOrderOfArrival) {
  Reserving(kAnn, 1, 8);
  EXPECT_THAT(Reserving(kBob, 2, 8), ElementsAre("2:Queued"));
  EXPECT_THAT(Reserving(kAnn, 3, 8), ElementsAre("3:Queued"));
  EXPECT_THAT(From(kAnn, Aborted{Key(1), AbortReason::kFinished}), ElementsAre("1:finished", "2:Granted"));
  EXPECT_THAT(From(kBob, Aborted{Key(2), AbortReason::kCancelled}), ElementsAre("2:failed", "3:Granted"));
}

TEST_F(ReceiverTest, PassesOneThatWaitsMaxBypassTimesAndNotOnceMore) {
  Reserving(kAnn, 1, 2);                                         // 3 pages, 7 left
  EXPECT_THAT(Reserving(kAnn, 2, 8), ElementsAre("2:Queued"));   // 9 pages
  EXPECT_THAT(Reserving(kBob, 3, 1), ElementsAre("3:Granted"));  // passes once
  EXPECT_THAT(Reserving(kBob, 4, 1), ElementsAre("4:Granted"));  // passes twice
  EXPECT_THAT(Reserving(kBob, 5, 1), ElementsAre("5:Queued"));   // 3 pages are free, but no more
  EXPECT_THAT(From(kBob, Aborted{Key(3), AbortReason::kCancelled}), ElementsAre("3:failed"));
  EXPECT_THAT(From(kBob, Aborted{Key(4), AbortReason::kCancelled}), ElementsAre("4:failed"));
  EXPECT_THAT(From(kAnn, Aborted{Key(1), AbortReason::kCancelled}), ElementsAre("1:failed", "2:Granted"));
  EXPECT_THAT(From(kAnn, Aborted{Key(2), AbortReason::kCancelled}), ElementsAre("2:failed", "5:Granted"));
}

TEST_F(ReceiverTest, AWriterThatReturnsWithManyPassesNobodyMoreOftenThanThat) {
  Reserving(kAnn, 1, 2);                                        // 3 pages
  Reserving(kAnn, 2, 6);                                        // 7 pages: none is left
  EXPECT_THAT(Reserving(kAnn, 3, 8), ElementsAre("3:Queued"));  // 9 pages
  for (uint64_t request = 4; request < 7; ++request) Reserving(kBob, request, 1);
  Silent(kBob);
  EXPECT_THAT(From(kAnn, Aborted{Key(2), AbortReason::kFinished}), ElementsAre("2:finished"));
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
  EXPECT_THAT(On(Receiver::Close{Key(1)}), ElementsAre("3:Granted"));
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
  EXPECT_THAT(From(kBob, Aborted{Key(1), AbortReason::kFinished}), ElementsAre("1:finished", "2:Granted"));
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
  EXPECT_THAT(From(kBob, Aborted{Key(1), AbortReason::kFinished}), ElementsAre("1:finished", "2:Granted"));
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
  EXPECT_THAT(Reserving(kAnn, 2, 10), ElementsAre("2:Refused(too large)", "2:failed"));
}

TEST_F(ReceiverTest, RefusesBeyondItsQueue) {
  Reserving(kAnn, 1, 9);
  for (uint64_t request = 2; request < 6; ++request) Reserving(kAnn, request, 1);
  EXPECT_THAT(Reserving(kBob, 6, 1), ElementsAre("6:Refused(queue full)", "6:failed"));
  EXPECT_EQ(receiver_.counts().queued, 4);
}

TEST_F(ReceiverTest, RefusesPromptsOfAbsurdLength) {
  EXPECT_THAT(Reserving(kAnn, 1, 2147483647), ElementsAre("1:Refused(too large)", "1:failed"));
}

TEST_F(ReceiverTest, RefusesAttemptsThatAreNotOpen) {
  EXPECT_THAT(From(kAnn, Reserve{Key(1), 1, {}}), ElementsAre("1:Refused(unknown attempt)"));
  EXPECT_OK(receiver_.Open(Key(2)));
  On(Receiver::Close{Key(2)});
  EXPECT_THAT(From(kAnn, Reserve{Key(2), 1, {}}), ElementsAre("2:Refused(unknown attempt)"));
}

TEST_F(ReceiverTest, OpensEachAttemptOnceAndNeverAnOlderOne) {
  EXPECT_OK(receiver_.Open(Key(1, 2)));
  EXPECT_TRUE(Fails(receiver_.Open(Key(1, 2)), absl::StatusCode::kAlreadyExists, "is open"));
  EXPECT_TRUE(Fails(receiver_.Open(Key(1, 1)), absl::StatusCode::kFailedPrecondition, "later"));
  On(Receiver::Close{Key(1, 2)});
  EXPECT_TRUE(Fails(receiver_.Open(Key(1, 2)), absl::StatusCode::kFailedPrecondition, "later"));
  EXPECT_OK(receiver_.Open(Key(1, 3)));
}

TEST_F(ReceiverTest, BoundsOpenAttempts) {
  for (uint64_t request = 0; request < 100; ++request) EXPECT_OK(receiver_.Open(Key(request)));
  EXPECT_TRUE(Fails(receiver_.Open(Key(100)), absl::StatusCode::kResourceExhausted, "100"));
}

TEST_F(ReceiverTest, DrainingRefusesNewWorkAndKeepsWhatWaits) {
  Reserving(kAnn, 1, 8);
  Reserving(kAnn, 2, 8);
  EXPECT_OK(receiver_.Open(Key(3)));
  On(Receiver::StartDraining{});
  EXPECT_TRUE(Fails(receiver_.Open(Key(4)), absl::StatusCode::kUnavailable, "draining"));
  EXPECT_THAT(From(kBob, Reserve{Key(3), 1, {}}), ElementsAre("3:Refused(draining)", "3:failed"));
  EXPECT_THAT(From(kAnn, Aborted{Key(1), AbortReason::kFinished}), ElementsAre("1:finished", "2:Granted"));
}

TEST_F(ReceiverTest, DropsASequenceWhoseCommitDoesNotFit) {
  Reserving(kAnn, 1, 2);
  Commit wrong_tag = CommitOf(LastGrant());
  ++wrong_tag.tag;
  EXPECT_THAT(From(kAnn, wrong_tag), ElementsAre("1:Committed(error)", "1:failed"));
  EXPECT_EQ(pages_.free_pages(), 10) << "a Commit is a fence";

  Reserving(kAnn, 2, 2);
  Commit wrong_count = CommitOf(LastGrant());
  ++wrong_count.tokens;
  EXPECT_THAT(From(kAnn, wrong_count), ElementsAre("2:Committed(error)", "2:failed"));
  EXPECT_EQ(pages_.free_pages(), 10);
}

TEST_F(ReceiverTest, KeepsRevokedPagesUntilTheFence) {
  Reserving(kAnn, 1, 2);
  const Granted grant = LastGrant();
  EXPECT_THAT(On(Receiver::Close{Key(1)}), ElementsAre("1:Revoke"));
  EXPECT_EQ(pages_.free_pages(), 7);
  EXPECT_THAT(On(Receiver::Close{Key(1)}), IsEmpty());
  EXPECT_THAT(From(kAnn, CommitOf(grant)), ElementsAre("1:Committed(error)")) << "it crossed with Revoke";
  EXPECT_EQ(pages_.free_pages(), 10);
}

TEST_F(ReceiverTest, CancelReserveDoesNotGiveBackAGrant) {
  Reserving(kAnn, 1, 2);
  EXPECT_THAT(From(kAnn, CancelReserve{Key(1)}), IsEmpty());
  EXPECT_EQ(pages_.free_pages(), 7);
  EXPECT_THAT(From(kAnn, Aborted{Key(1), AbortReason::kCancelled}), ElementsAre("1:failed"));
  EXPECT_EQ(pages_.free_pages(), 10);
}

TEST_F(ReceiverTest, QuarantinesTheGrantsOfASilentPeerUntilItReturns) {
  Reserving(kAnn, 1, 2);
  const Granted grant = LastGrant();
  EXPECT_THAT(Silent(kAnn), IsEmpty());
  EXPECT_EQ(pages_.quarantined(), 3);
  Alive(kAnn);
  EXPECT_EQ(pages_.quarantined(), 0);
  Silent(kAnn);
  EXPECT_THAT(From(kAnn, CommitOf(grant)), ElementsAre("1:Committed", "1:received"));
  EXPECT_EQ(pages_.quarantined(), 0) << "a message is life";
}

TEST_F(ReceiverTest, FreesTheGrantsOfARevokedPeer) {
  Reserving(kAnn, 1, 2);
  Reserving(kAnn, 2, 2);
  Reserving(kBob, 3, 2);
  On(Receiver::Close{Key(2)});
  Silent(kAnn);
  EXPECT_THAT(Revoked(kAnn), ElementsAre("1:failed")) << "the other one was closed";
  EXPECT_EQ(pages_.free_pages(), 7);
  EXPECT_EQ(pages_.quarantined(), 0);
  EXPECT_THAT(From(kAnn, Reserve{Key(9), 1, {}}), IsEmpty()) << "it is not heard any more";
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
  EXPECT_THAT(Silent(kAnn), ElementsAre("2:Refused(queue full)", "2:failed"));
  EXPECT_THAT(Reserving(kBob, 3, 4), ElementsAre("3:Granted"));
}

TEST_F(ReceiverTest, ASilentPeersReservationNeitherAdvancesNorHoldsOthersUp) {
  Reserving(kBob, 1, 8);
  Reserving(kAnn, 2, 1);
  Silent(kAnn);
  EXPECT_THAT(From(kBob, Aborted{Key(1), AbortReason::kFinished}), ElementsAre("1:finished"));
  for (uint64_t request = 3; request < 7; ++request) {
    EXPECT_THAT(Reserving(kBob, request, 1), ElementsAre(absl::StrCat(request, ":Granted")));
  }
  EXPECT_THAT(Alive(kAnn), ElementsAre("2:Granted"));
}

TEST_F(ReceiverTest, AReceivedSequenceOutlivesItsWriter) {
  Reserving(kAnn, 1, 2);
  From(kAnn, CommitOf(LastGrant()));
  EXPECT_THAT(Revoked(kAnn), IsEmpty());
  EXPECT_EQ(receiver_.counts().received, 1);
}

TEST_F(ReceiverTest, UnknownDuplicateAndForeignMessagesChangeNothing) {
  Reserving(kAnn, 1, 2);
  const Granted grant = LastGrant();
  Reserving(kAnn, 2, 9);
  const Receiver before = receiver_;
  EXPECT_THAT(From(kBob, Aborted{Key(1), AbortReason::kCancelled}), IsEmpty()) << "not Bob's";
  EXPECT_THAT(From(kBob, CommitOf(grant)), ElementsAre("1:Committed(error)"));
  EXPECT_THAT(From(kBob, Reserve{Key(1), 2, {}}), ElementsAre("1:Refused(unknown attempt)"));
  EXPECT_THAT(From(kBob, CancelReserve{Key(2)}), IsEmpty());
  EXPECT_THAT(From(kAnn, Reserve{Key(1), 2, {}}), IsEmpty()) << "said twice";
  EXPECT_THAT(From(kAnn, Reserve{Key(2), 2, {}}), IsEmpty());
  EXPECT_THAT(From(kAnn, Commit{Key(2), 9, {}, 0}), ElementsAre("2:Committed(error)")) << "it only waits";
  EXPECT_THAT(From(kAnn, Aborted{Key(3), AbortReason::kCancelled}), IsEmpty());
  EXPECT_THAT(From(PeerId{77}, Reserve{Key(4), 1, {}}), IsEmpty()) << "nobody";
  EXPECT_THAT(From(kAnn, Granted{Key(1), {}, {}}), IsEmpty()) << "its own kind of message";
  EXPECT_THAT(On(Receiver::Close{Key(99)}), IsEmpty());
  EXPECT_EQ(receiver_, before);

  From(kAnn, CommitOf(grant));
  EXPECT_THAT(From(kAnn, CommitOf(grant)), ElementsAre("1:Committed(error)")) << "received once";
  EXPECT_THAT(From(kAnn, Aborted{Key(1), AbortReason::kCancelled}), IsEmpty());
  EXPECT_EQ(receiver_.counts().received, 1);
  EXPECT_EQ(pages_.free_pages(), 7) << "they are the caller's";
}

TEST(SeenAttemptsTest, ForgetsTheRequestSeenLongestAgo) {
  SeenAttempts seen(2);
  EXPECT_TRUE(seen.Admit(Key(1, 5)));
  EXPECT_TRUE(seen.Admit(Key(2, 5)));
  EXPECT_FALSE(seen.Admit(Key(1, 5)));
  EXPECT_FALSE(seen.Admit(Key(1, 4)));
  EXPECT_TRUE(seen.Admit(Key(3, 5)));
  EXPECT_TRUE(seen.Admit(Key(1, 4))) << "forgotten";
  EXPECT_FALSE(seen.Admit(Key(3, 5)));
}

}  // namespace
}  // namespace baton::handoff
