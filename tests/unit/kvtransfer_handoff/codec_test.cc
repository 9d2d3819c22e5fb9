// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/wire/codec.h"

#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "baton/v1/handoff.pb.h"
#include "tests/status_matchers.h"

namespace baton::handoff {
namespace {

using ::baton::testing::Fails;

constexpr AttemptKey kCodedKey{.request = {0x0102030405060708, 9}, .attempt = 3};

std::vector<Message> EveryMessage() {
  return {Reserve{kCodedKey, 33, {{1, 2}, {3}}},
          Queued{kCodedKey},
          Granted{kCodedKey, {PageId{7}, PageId{0}, PageId{4000000000}}, {0, 2}},
          Refused{kCodedKey, Cause::kUnknownAttempt, ""},
          Refused{kCodedKey, Cause::kTooLarge, "why"},
          Refused{kCodedKey, Cause::kDraining, "why"},
          Refused{kCodedKey, Cause::kOverloaded, "why", absl::Milliseconds(250)},
          CancelReserve{kCodedKey},
          Commit{kCodedKey, 33, {128000, 7}, 0xfedcba9876543210},
          Committed{kCodedKey, ""},
          Committed{kCodedKey, "revoked"},
          Committed{kCodedKey, "revoked", Cause::kRevoked},
          Revoke{kCodedKey},
          Aborted{kCodedKey, Cause::kFinished},
          Aborted{kCodedKey, Cause::kCancelled},
          Aborted{kCodedKey, Cause::kRevoked},
          Aborted{kCodedKey, Cause::kInternal}};
}

Hello AHello() {
  return {.worker_id = "w", .epoch = 77, .numerics_id = "n", .layout = "16 tokens", .pages_total = 1000};
}

TEST(HandoffCodecTest, EveryMessageComesBackAsItWas) {
  for (const Message& message : EveryMessage()) {
    ASSERT_OK_AND_ASSIGN(const WireMessage decoded, Decode(Encode(message)));
    EXPECT_EQ(decoded, WireMessage(message)) << message.index();
  }
  ASSERT_OK_AND_ASSIGN(const WireMessage hello, Decode(Encode(AHello())));
  EXPECT_EQ(hello, WireMessage(AHello()));
  const Welcome welcome{"no", AHello()};
  ASSERT_OK_AND_ASSIGN(const WireMessage decoded, Decode(Encode(welcome)));
  EXPECT_EQ(decoded, WireMessage(welcome));
}

TEST(HandoffCodecTest, NamesTheFieldThatIsWrong) {
  struct Case {
    const char* field;
    std::function<void(v1::HandoffMessage*)> fill;
  };
  const std::string id = kCodedKey.request.ToBytes();
  const auto key = [&](v1::HandoffKey* k) {
    k->set_request_id(id);
    k->set_attempt(1);
  };
  const Case kCases[] = {
      {"message", [](v1::HandoffMessage*) {}},
      {"key.request_id", [](v1::HandoffMessage* m) { m->mutable_queued()->mutable_key()->set_request_id("short"); }},
      {"key.attempt", [&](v1::HandoffMessage* m) { m->mutable_revoke()->mutable_key()->set_request_id(id); }},
      {"reserve.tokens", [&](v1::HandoffMessage* m) { key(m->mutable_reserve()->mutable_key()); }},
      {"reserve.tokens",
       [&](v1::HandoffMessage* m) {
         key(m->mutable_reserve()->mutable_key());
         m->mutable_reserve()->set_tokens(0x80000000);
       }},
      {"reserve.page_hashes",
       [&](v1::HandoffMessage* m) {
         key(m->mutable_reserve()->mutable_key());
         m->mutable_reserve()->set_tokens(16);
         m->mutable_reserve()->add_page_hashes("short");
       }},
      {"reserve.page_hashes",
       [&](v1::HandoffMessage* m) {
         key(m->mutable_reserve()->mutable_key());
         m->mutable_reserve()->set_tokens(1);
         m->mutable_reserve()->add_page_hashes(std::string(32, 'x'));
         m->mutable_reserve()->add_page_hashes(std::string(32, 'x'));
       }},
      {"granted.wanted",
       [&](v1::HandoffMessage* m) {
         key(m->mutable_granted()->mutable_key());
         m->mutable_granted()->add_wanted(0);
       }},
      {"refused.cause", [&](v1::HandoffMessage* m) { key(m->mutable_refused()->mutable_key()); }},
      {"refused.detail",
       [&](v1::HandoffMessage* m) {
         key(m->mutable_refused()->mutable_key());
         m->mutable_refused()->set_detail(std::string(1 << 20, 'x'));
       }},
      {"commit.tokens", [&](v1::HandoffMessage* m) { key(m->mutable_commit()->mutable_key()); }},
      {"commit.output",
       [&](v1::HandoffMessage* m) {
         key(m->mutable_commit()->mutable_key());
         m->mutable_commit()->set_tokens(1);
         m->mutable_commit()->add_output(-1);
       }},
      {"refused.cause",
       [&](v1::HandoffMessage* m) {
         key(m->mutable_refused()->mutable_key());
         m->mutable_refused()->set_cause(v1::CAUSE_FINISHED);  // no refusal
       }},
      {"refused.cause",
       [&](v1::HandoffMessage* m) {
         key(m->mutable_refused()->mutable_key());
         m->mutable_refused()->set_cause(static_cast<v1::Cause>(v1::Cause_MAX + 1));
       }},
      {"committed.cause",
       [&](v1::HandoffMessage* m) {
         key(m->mutable_committed()->mutable_key());
         m->mutable_committed()->set_error("why");
       }},
      {"aborted.cause", [&](v1::HandoffMessage* m) { key(m->mutable_aborted()->mutable_key()); }},
      {"hello.worker_id", [](v1::HandoffMessage* m) { m->mutable_hello()->set_worker_id(std::string(2000, 'x')); }},
  };
  for (const Case& c : kCases) {
    v1::HandoffMessage message;
    c.fill(&message);
    EXPECT_TRUE(Fails(Decode(message.SerializeAsString()), absl::StatusCode::kInvalidArgument, c.field)) << c.field;
  }
}

TEST(HandoffCodecTest, SurvivesTruncatedAndFlippedBytes) {
  const google::protobuf::LogSilencer quiet;  // about bytes that are no text
  std::mt19937 random(1);
  for (const Message& message : EveryMessage()) {
    const std::string bytes = Encode(message);
    for (size_t length = 0; length < bytes.size(); ++length) Decode(bytes.substr(0, length)).IgnoreError();
    for (int i = 0; i < 500; ++i) {
      std::string flipped = bytes;
      flipped[random() % flipped.size()] ^= char(1 << (random() % 8));
      Decode(flipped).IgnoreError();
    }
  }
}

TEST(HelloTest, APairFitsWhenPagesOfOneArePagesOfTheOther) {
  EXPECT_OK(CheckPair(AHello(), AHello()));
  Hello other_pool = AHello();
  other_pool.pages_total = 5;
  other_pool.worker_id = "v";
  EXPECT_OK(CheckPair(AHello(), other_pool)) << "sizes of pools may differ";

  const std::pair<const char*, std::function<void(Hello*)>> kChanges[] = {
      {"protocol", [](Hello* h) { ++h->protocol; }},
      {"numerics_id", [](Hello* h) { h->numerics_id = "x"; }},
      {"layout is 32 tokens at the peer and 16 tokens here", [](Hello* h) { h->layout = "32 tokens"; }},
      {"worker_id", [](Hello* h) { h->worker_id.clear(); }},
      {"pool", [](Hello* h) { h->pages_total = 0; }},
  };
  for (const auto& [text, change] : kChanges) {
    Hello theirs = AHello();
    change(&theirs);
    EXPECT_TRUE(Fails(CheckPair(AHello(), theirs), absl::StatusCode::kFailedPrecondition, text));
  }
}

}  // namespace
}  // namespace baton::handoff
