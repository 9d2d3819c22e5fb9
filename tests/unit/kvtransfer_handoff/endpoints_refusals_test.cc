// SPDX-License-Identifier: Apache-2.0
// Peers that do not fit, are not who they should be, or do not keep to the protocol.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>

#include "endpoints_fixture.h"
#include "kvtransfer/handoff/messages.h"
#include "kvtransfer/wire/codec.h"

namespace baton::handoff_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(EndpointsTest, RefusesASecondWorkerOfTheSameNameWhileTheFirstIsAlive) {
  Start();
  GetGranted(1);
  PrefillSide second({.identity = {.worker_id = "prefill", .epoch = 3, .numerics_id = "numerics"}});
  EXPECT_OK(decode_->receiver().OpenAttempt(Key(2), absl::Now()));
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
  EXPECT_THAT(Prefill("failed 1"), HasSubstr("pair_mismatch (fault of pair)"));
  EXPECT_THAT(Prefill("failed 1"), HasSubstr("do not fit: numerics_id is other"));
  decode_->Close(Key(1));
  ExpectNothingHeld();
}

TEST_F(EndpointsTest, RefusesAnotherProcessAtTheTargetsAddress) {
  Start();
  EXPECT_OK(decode_->receiver().OpenAttempt(Key(1), absl::Now()));
  HandoffTarget former = decode_->target();
  ++former.epoch;
  prefill_->Reserve(Key(1), former, kTokens);
  EXPECT_THAT(Prefill("failed 1"), AllOf(HasSubstr("peer_lost"), HasSubstr("worker decode, epoch 1 answers")));
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
  EXPECT_THAT(Prefill("failed 1"), HasSubstr("peer_lost (fault of peer)"));
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
    Send(handoff::Encode(handoff::Hello{
        .worker_id = "raw", .epoch = 1, .numerics_id = "numerics", .layout = kLayout.ToString(), .pages_total = 8}));
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
  handoff::Hello hello{.protocol = 99,
                       .worker_id = "raw",
                       .epoch = 1,
                       .numerics_id = "numerics",
                       .layout = kLayout.ToString(),
                       .pages_total = 8};
  old.Send(handoff::Encode(hello));
  EXPECT_THAT(old.diary().WaitFor("welcome"),
              HasSubstr(absl::StrCat("protocol is 99 at the peer and ", handoff::kProtocolVersion, " here")));
  hello.protocol = handoff::kProtocolVersion;
  hello.layout += " of another kind";
  old.Send(handoff::Encode(hello));
  EXPECT_TRUE(Eventually([&] { return old.diary().Count("welcome the workers do not fit: layout is ") == 1; }));
}

TEST_F(EndpointsTest, WritesOutsideOfTheGrantEndTheConnection) {
  StartDecode({.pages = 8});
  const uint64_t block = kLayout.block_stride();
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
    EXPECT_OK(decode_->receiver().OpenAttempt(Key(++request), absl::Now()));
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
