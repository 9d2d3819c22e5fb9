// SPDX-License-Identifier: Apache-2.0
// A RequestMachine with the router and the workers around it played by the test.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/outcome_proto.h"
#include "common/steady_time.h"
#include "fake_tokenizer.h"
#include "router/request_machine.h"

namespace baton::router {

inline constexpr TokenId kEnd = 26;
inline constexpr SteadyTime kStart;

// Tokens 0 to 25 are the letters; then an end token and two halves of "é".
inline FakeTokenizer Letters() {
  std::vector<std::string> tokens;
  for (char c = 'a'; c <= 'z'; ++c) tokens.emplace_back(1, c);
  tokens.insert(tokens.end(), {"<end>", "\xc3", "\xa9"});
  return FakeTokenizer(std::move(tokens), kEnd + 100);
}

class RequestMachineTest : public ::testing::Test {
 protected:
  RequestMachineTest() {
    spec_.model = "m";
    spec_.prompt = {1, 2, 3};
    spec_.sampling.set_max_tokens(10);
    spec_.sampling.set_seed(5);
    spec_.sampling.add_stop_token_ids(kEnd);
  }

  // Starts the request and places its first attempt on p1 and d1.
  void Begin() {
    Start();
    PlaceOn("p1", "d1");
  }
  void Start() {
    machine_ = std::make_unique<RequestMachine>(spec_, tokenizer_, policy_, kStart);
    machine_->Start();
    Run();
    ASSERT_EQ(Count<action::Place>(), 1);
  }
  // ... and gets it accepted.
  void BeginAccepted() {
    Begin();
    Accept(1);
  }
  // ... and prefilled: the first token is 'a', the sequence is the decode worker's.
  void BeginDecoding() {
    BeginAccepted();
    Prefill(1, FirstToken(0, 0));
    Decode(1, Started());
    Prefill(1, HandedOver());
  }

  void PlaceOn(const std::string& prefill, const std::string& decode) {
    PlacementResult result;
    result.kind = PlacementResult::Kind::kPlaced;
    result.placement.pair = 77;
    result.placement.local = prefill == decode;
    result.placement.prefill.key = {prefill, 1};
    result.placement.decode.key = {decode, 1};
    machine_->OnPlaced(now_, result);
    Run();
  }
  void PlaceNowhere(PlacementResult::Kind kind) { PlaceNowhere({kind, {}, "nowhere"}); }
  void PlaceNowhere(const PlacementResult& result) {
    machine_->OnPlaced(now_, result);
    Run();
  }
  void Accept(uint32_t attempt) {
    v1::DecodeEvent event;
    event.mutable_accepted();
    Decode(attempt, event);
  }
  void Decode(uint32_t attempt, const v1::DecodeEvent& event) {
    machine_->OnDecodeEvent(now_, attempt, event);
    Run();
  }
  void Prefill(uint32_t attempt, const v1::PrefillEvent& event) {
    machine_->OnPrefillEvent(now_, attempt, event);
    Run();
  }
  void DecodeEnds(uint32_t attempt, const absl::Status& status) {
    machine_->OnDecodeEnded(now_, attempt, status);
    Run();
  }
  void PrefillEnds(uint32_t attempt, const absl::Status& status) {
    machine_->OnPrefillEnded(now_, attempt, status);
    Run();
  }
  void PlaceMigrationOn(const std::string& decode) {
    PlacementResult result;
    result.kind = PlacementResult::Kind::kPlaced;
    result.placement.decode.key = {decode, 1};
    machine_->OnMigrationPlaced(now_, result);
    Run();
  }
  void PlaceMigrationNowhere() {
    machine_->OnMigrationPlaced(now_, {PlacementResult::Kind::kOnlyAvoided, {}, "nowhere"});
    Run();
  }
  void Wake() {
    const auto wake = Last<action::WakeAfter>();
    now_ += wake.delay;
    OnWake(wake.wake);
  }
  void OnWake(const router::Wake& wake) {
    machine_->OnWake(now_, wake);
    Run();
  }

  static v1::PrefillEvent FirstToken(uint32_t index, TokenId token) {
    v1::PrefillEvent event;
    event.mutable_first_token()->set_output_index(index);
    event.mutable_first_token()->set_token_id(token);
    return event;
  }
  static v1::PrefillEvent PrefillStarted() {
    v1::PrefillEvent event;
    event.mutable_started();
    return event;
  }
  static v1::PrefillEvent HandedOver() {
    v1::PrefillEvent event;
    event.mutable_handed_over()->set_kv_bytes(4096);
    event.mutable_handed_over()->set_transport("ucx:shm");
    event.mutable_handed_over()->set_cached_prompt_tokens(2);
    return event;
  }
  static v1::DecodeEvent Started() {
    v1::DecodeEvent event;
    event.mutable_started();
    return event;
  }
  static v1::DecodeEvent StartedFrom(uint32_t next_output_index) {
    v1::DecodeEvent event;
    event.mutable_started()->set_next_output_index(next_output_index);
    return event;
  }
  static v1::DecodeEvent Draining() {
    v1::DecodeEvent event;
    event.mutable_draining();
    return event;
  }
  static v1::DecodeEvent Migrated(uint32_t to_attempt) {
    v1::DecodeEvent event;
    event.mutable_migrated()->set_to_attempt(to_attempt);
    return event;
  }
  static v1::DecodeEvent Tokens(uint32_t index, const std::vector<TokenId>& tokens) {
    v1::DecodeEvent event;
    for (const TokenId token : tokens) {
      v1::TokenEvent& one = *event.mutable_tokens()->add_tokens();
      one.set_output_index(index++);
      one.set_token_id(token);
    }
    return event;
  }
  static v1::DecodeEvent DecodeFinished(v1::FinishReason reason) {
    v1::DecodeEvent event;
    event.mutable_finished()->set_reason(reason);
    return event;
  }
  static v1::DecodeEvent DecodeFailed(Cause cause) { return DecodeFailed(cause, DefaultFault(cause)); }
  static v1::DecodeEvent DecodeFailed(Cause cause, Fault at_fault) {
    v1::DecodeEvent event;
    FillFailed(Outcome(cause, at_fault, "said the decode worker"), event.mutable_failed());
    return event;
  }
  static v1::PrefillEvent PrefillFinished(v1::FinishReason reason) {
    v1::PrefillEvent event;
    event.mutable_finished()->set_reason(reason);
    return event;
  }
  static v1::PrefillEvent PrefillFailed(Cause cause) { return PrefillFailed(cause, DefaultFault(cause)); }
  static v1::PrefillEvent PrefillFailed(Cause cause, Fault at_fault) {
    v1::PrefillEvent event;
    FillFailed(Outcome(cause, at_fault, "said the prefill worker"), event.mutable_failed());
    return event;
  }

  template <typename T>
  int Count() const {
    int count = 0;
    for (const Action& action : actions_) count += std::holds_alternative<T>(action) ? 1 : 0;
    return count;
  }
  template <typename T>
  T Last() const {
    for (auto it = actions_.rbegin(); it != actions_.rend(); ++it) {
      if (const T* found = std::get_if<T>(&*it)) return *found;
    }
    ADD_FAILURE() << "no such action";
    return T{};
  }
  // Returns the tokens sent to the client; checks that no token is missing.
  std::string Text() const {
    std::string text;
    uint32_t next = 0;
    for (const Action& action : actions_) {
      const auto* send = std::get_if<action::Send>(&action);
      if (send == nullptr) continue;
      EXPECT_EQ(send->chunk.output_index(), next);
      next += send->chunk.token_ids_size();
      text += send->chunk.text();
    }
    return text;
  }
  std::vector<TokenId> SentTokens() const {
    std::vector<TokenId> tokens;
    for (const Action& action : actions_) {
      const auto* send = std::get_if<action::Send>(&action);
      if (send != nullptr) tokens.insert(tokens.end(), send->chunk.token_ids().begin(), send->chunk.token_ids().end());
    }
    return tokens;
  }
  absl::Status Failure() const { return Last<action::Fail>().status; }

  const FakeTokenizer tokenizer_ = Letters();
  RequestSpec spec_;
  RetryPolicy policy_;
  SteadyTime now_ = kStart;
  std::unique_ptr<RequestMachine> machine_;
  std::vector<Action> actions_;

 private:
  void Run() {
    for (Action& action : machine_->TakeActions()) actions_.push_back(std::move(action));
  }
};

}  // namespace baton::router
