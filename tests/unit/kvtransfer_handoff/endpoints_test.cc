#include "kvtransfer/endpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "kvtransfer/handoff/messages.h"
#include "kvtransfer/wire/codec.h"
#include "tests/status_matchers.h"
#include "two_workers.h"

namespace baton::handoff_test {
namespace {

using ::baton::testing::Fails;
using ::testing::HasSubstr;
using ::testing::Ne;

constexpr int kTokens = 10;  // three pages of four

class EndpointsTest : public ::testing::Test {
 protected:
  void StartDecode(DecodeSide::Settings settings = {}) { decode_ = std::make_unique<DecodeSide>(std::move(settings)); }
  void StartPrefill(const PrefillSide::Settings& settings = {}) { prefill_ = std::make_unique<PrefillSide>(settings); }
  void Start() {
    StartDecode();
    StartPrefill();
  }

  void OpenAndReserve(uint64_t request, int tokens = kTokens) {
    EXPECT_OK(decode_->receiver().OpenAttempt(Key(request)));
    prefill_->Reserve(Key(request), decode_->target(), tokens);
  }
  void GetGranted(uint64_t request, int tokens = kTokens) {
    OpenAndReserve(request, tokens);
    ASSERT_NE(Prefill(absl::StrCat("granted ", request)), "");
  }
  void HandOver(uint64_t request, int tokens = kTokens) {
    GetGranted(request, tokens);
    prefill_->Put(Key(request), tokens);
    prefill_->sender().Commit(Key(request), {42});
    ASSERT_NE(Decode(absl::StrCat("received ", request)), "");
    ASSERT_NE(Prefill(absl::StrCat("done ", request)), "");
  }

  std::string Prefill(const std::string& text) { return prefill_->diary().WaitFor(text); }
  std::string Decode(const std::string& text) { return decode_->diary().WaitFor(text); }
  void ExpectNothingHeld() {
    EXPECT_TRUE(Eventually([&] { return decode_->IsEmpty(); }));
    EXPECT_TRUE(Eventually([&] { return prefill_->IsEmpty(); }));
    EXPECT_EQ(decode_->pool().counts().quarantined, 0u);
    EXPECT_EQ(decode_->diary().Count("corrupt"), 0);
  }

  std::unique_ptr<DecodeSide> decode_;
  std::unique_ptr<PrefillSide> prefill_;
};

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

TEST_F(EndpointsTest, AFinishedRequestReleasesEverything) {
  Start();
  GetGranted(1);
  prefill_->Put(Key(1), kTokens);
  prefill_->Abort(Key(1), /*finished=*/true);
  ASSERT_NE(Prefill("released 1"), "");
  ASSERT_NE(Decode("finished 1"), "");
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, RefusalsReachBothSides) {
  StartDecode({.pages = 3});
  StartPrefill();
  prefill_->Reserve(Key(9), decode_->target(), kTokens);
  EXPECT_THAT(Prefill("failed 9"), HasSubstr("FAILED_PRECONDITION"));
  OpenAndReserve(1);
  EXPECT_THAT(Prefill("failed 1"), HasSubstr("too large"));
  EXPECT_THAT(Decode("failed 1"), HasSubstr("4 pages"));
  decode_->receiver().StartDraining();
  EXPECT_TRUE(Fails(decode_->receiver().OpenAttempt(Key(2)), absl::StatusCode::kUnavailable, "draining"));
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, AnAttemptIsReservedForOnce) {
  Start();
  GetGranted(1);
  prefill_->Reserve(Key(1), decode_->target(), kTokens);
  EXPECT_THAT(Prefill("failed 1"), HasSubstr("FAILED_PRECONDITION"));
  prefill_->Abort(Key(1));
  ASSERT_NE(Prefill("released 1"), "");
  ExpectNothingHeld();
}

// ------------------------------------------------------------------------------------------------ cancels

TEST_F(EndpointsTest, CancelBeforeTheConnectionIsThere) {
  Start();
  OpenAndReserve(1);
  prefill_->Abort(Key(1));
  ASSERT_NE(Prefill("released 1"), "");
  decode_->Close(Key(1));
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
  EXPECT_THAT(Decode("failed 1"), HasSubstr("DATA_LOSS"));
  ExpectNothingHeld();
}

// ------------------------------------------------------------------------------------------------ lost peers

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
  prefill_->transport().Pause();
  EXPECT_TRUE(Eventually([&] { return decode_->pool().counts().quarantined == 4; }));
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
  EXPECT_THAT(Prefill("failed 2"), AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr(limit)));
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

// ------------------------------------------------------------------------------------------------ pairs that do not
// fit

TEST_F(EndpointsTest, RefusesASecondWorkerOfTheSameNameWhileTheFirstIsAlive) {
  Start();
  GetGranted(1);
  PrefillSide second({.identity = {.worker_id = "prefill", .epoch = 3, .numerics_id = "numerics"}});
  EXPECT_OK(decode_->receiver().OpenAttempt(Key(2)));
  second.Reserve(Key(2), decode_->target(), kTokens);
  EXPECT_THAT(second.diary().WaitFor("failed 2"), HasSubstr("another worker with the id prefill is connected"));
  prefill_->Put(Key(1), kTokens);
  prefill_->sender().Commit(Key(1), {42});
  EXPECT_NE(Prefill("done 1"), "") << "the first is left alone";
  decode_->Close(Key(1));
  decode_->Close(Key(2));
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, RefusesAPairOfDifferentNumerics) {
  StartDecode();
  StartPrefill({.identity = {.worker_id = "prefill", .epoch = 2, .numerics_id = "other"}});
  OpenAndReserve(1);
  EXPECT_THAT(Prefill("failed 1"), HasSubstr("UNAVAILABLE")) << "the pair's fault, not the request's";
  EXPECT_THAT(Prefill("failed 1"), HasSubstr("do not fit: numerics_id is other"));
  decode_->Close(Key(1));
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, RefusesAnotherProcessAtTheTargetsAddress) {
  Start();
  EXPECT_OK(decode_->receiver().OpenAttempt(Key(1)));
  HandoffTarget former = decode_->target();
  ++former.epoch;
  prefill_->Reserve(Key(1), former, kTokens);
  EXPECT_THAT(Prefill("failed 1"), HasSubstr("answers worker decode, epoch 1"));
  HandOver(2);  // the right one is reachable all the same
  decode_->Close(Key(2));
  decode_->Close(Key(1));
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, RefusesAWrongSecret) {
  StartDecode();
  PrefillSide::Settings settings;
  settings.transport.secret = "wrong";
  StartPrefill(settings);
  OpenAndReserve(1);
  EXPECT_THAT(Prefill("failed 1"), HasSubstr("UNAVAILABLE"));
  EXPECT_THAT(Prefill("failed 1"), HasSubstr("refuses our transport secret"));
}

TEST_F(EndpointsTest, ReportsATargetWhereNobodyListens) {
  Start();
  prefill_->Reserve(Key(1), {"decode", 1, "inproc:nobody"}, kTokens);
  EXPECT_THAT(Prefill("failed 1"), HasSubstr("inproc:nobody"));
}

// ------------------------------------------------------------------------------------------------ peers that misbehave

// A peer that has the secret and nothing else.
class RawPeer final : public TransportEvents {
 public:
  explicit RawPeer(const std::string& address) : transport_(*InprocTransport::Create(Options())) {
    memory_ = *transport_->AllocateRegion(1 << 16);
    EXPECT_OK(transport_->Start(this));
    transport_->Connect(address, [this](absl::StatusOr<PeerId> peer) {
      peer_ = *peer;
      diary_.Write("connected");
    });
    EXPECT_NE(diary_.WaitFor("connected"), "");
  }

  void OnPeerAccepted(PeerId) override {}
  void OnMessage(PeerId, std::string_view bytes) override {
    absl::StatusOr<handoff::WireMessage> message = handoff::Decode(bytes);
    if (std::holds_alternative<handoff::Welcome>(*message)) {
      diary_.Write(absl::StrCat("welcome ", std::get<handoff::Welcome>(*message).error));
    } else if (auto* granted = std::get_if<handoff::Granted>(&std::get<handoff::Message>(*message))) {
      diary_.Write(absl::StrCat("granted ", ToIndex(granted->pages.at(0))));
    }
  }
  void OnPeerState(PeerId, PeerState state, const absl::Status&) override {
    if (state == PeerState::kRevoked) diary_.Write("closed");
  }
  bool AllowWrite(PeerId, StreamId, uint64_t, uint64_t) override { return false; }

  void Send(std::string bytes) { transport_->Send(peer_, std::move(bytes)); }
  void Send(const handoff::Message& message) { Send(handoff::Encode(message)); }
  void SayHello() {
    handoff::Hello hello{.worker_id = "raw", .epoch = 1, .numerics_id = "numerics", .dtype = {}};
    handoff::SetLayout(kLayout, 8, &hello);
    Send(handoff::Encode(hello));
    EXPECT_EQ(diary_.WaitFor("welcome"), "welcome ");
  }
  void Put(StreamId stream, uint64_t offset, uint64_t bytes) {
    const PutPiece piece{static_cast<std::byte*>(memory_.data), offset, bytes};
    transport_->Put(peer_, stream, {&piece, 1});
  }
  Diary& diary() { return diary_; }

 private:
  Diary diary_;
  PeerId peer_{};
  TransportMemory memory_;
  std::unique_ptr<InprocTransport> transport_;
};

TEST_F(EndpointsTest, HangsUpOnPeersThatDoNotSpeakTheProtocol) {
  Start();
  {
    RawPeer garbage(decode_->target().address);
    garbage.Send("\xff\xff\xff garbage");
    EXPECT_NE(garbage.diary().WaitFor("closed"), "");
  }
  {
    RawPeer hasty(decode_->target().address);
    hasty.Send(handoff::Reserve{Key(1), 1, {}});
    EXPECT_NE(hasty.diary().WaitFor("closed"), "") << "no Hello";
  }
  {
    RawPeer twice(decode_->target().address);
    twice.SayHello();
    handoff::Hello hello;
    twice.Send(handoff::Encode(hello));
    EXPECT_NE(twice.diary().WaitFor("closed"), "");
  }
  HandOver(1);
  decode_->Close(Key(1));
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, HangsUpOnPeersThatNeverSayHello) {
  DecodeSide::Settings settings;
  settings.options.hello_timeout = absl::Milliseconds(50);
  StartDecode(std::move(settings));
  RawPeer mute(decode_->target().address);
  EXPECT_NE(mute.diary().WaitFor("closed"), "");
}

TEST_F(EndpointsTest, TellsAPeerOfAnotherVersionWhy) {
  StartDecode();
  RawPeer old(decode_->target().address);
  handoff::Hello hello{.protocol = 99, .worker_id = "raw", .epoch = 1, .numerics_id = "numerics", .dtype = {}};
  handoff::SetLayout(kLayout, 8, &hello);
  old.Send(handoff::Encode(hello));
  EXPECT_THAT(old.diary().WaitFor("welcome"), HasSubstr("protocol is 99 at the peer and 2 here"));
  hello.protocol = 2;
  ++hello.head_dim;
  old.Send(handoff::Encode(hello));
  EXPECT_TRUE(Eventually([&] { return old.diary().Count("welcome the workers do not fit: layout.head_dim") == 1; }));
}

TEST_F(EndpointsTest, WritesOutsideOfTheGrantEndTheConnection) {
  StartDecode({.pages = 8});
  const uint64_t block = kLayout.block_bytes();
  struct Write {
    const char* what;
    int64_t offset;  // from the granted page's first layer
    uint64_t bytes;
    StreamId stream_shift;
  };
  const Write kWrites[] = {
      {"the page to grow into", int64_t(block), block, 0},
      {"beyond the page", 0, block + 1, 0},
      {"another stream", 0, block, 1},
      {"outside of the pool", int64_t(8 * kLayout.page_bytes()), 1, 0},
  };
  uint64_t request = 0;
  for (const Write& write : kWrites) {
    RawPeer peer(decode_->target().address);
    peer.SayHello();
    EXPECT_OK(decode_->receiver().OpenAttempt(Key(++request)));
    peer.Send(handoff::Reserve{Key(request), 1, {}});
    const std::string granted = peer.diary().WaitFor("granted ");
    ASSERT_NE(granted, "");
    const uint64_t offset = std::stoull(granted.substr(8)) * block;
    const StreamId stream = handoff::StreamOf(Key(request));
    peer.Put(stream, offset, block);  // allowed
    peer.Put(stream + write.stream_shift, uint64_t(int64_t(offset) + write.offset), write.bytes);
    EXPECT_NE(peer.diary().WaitFor("closed"), "") << write.what;
    EXPECT_NE(Decode(absl::StrCat("failed ", request)), "");
    EXPECT_TRUE(Eventually([&] { return decode_->IsEmpty(); }));
  }
}

}  // namespace
}  // namespace baton::handoff_test
