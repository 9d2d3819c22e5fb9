// SPDX-License-Identifier: Apache-2.0
#include "client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/grpc.h"

namespace baton::testing {
namespace {

std::pair<int32_t, uint32_t> Bits(const v1::TokenLogprob& token) {
  return {token.token_id(), std::bit_cast<uint32_t>(token.logprob())};
}

void Append(const v1::Chunk& chunk, Answer& answer) {
  answer.text += chunk.text();
  answer.token_ids.insert(answer.token_ids.end(), chunk.token_ids().begin(), chunk.token_ids().end());
  for (const v1::TokenLogprobs& logprobs : chunk.logprobs()) {
    auto& row = answer.logprobs.emplace_back();
    row.push_back(Bits(logprobs.chosen()));
    for (const v1::TokenLogprob& top : logprobs.top()) row.push_back(Bits(top));
  }
}

std::string BrokenPromise(const v1::GenerateRequest& request, const Reply& reply, int finishes,
                          bool chunk_after_finish) {
  uint32_t next_index = 0;
  for (const v1::Chunk& chunk : reply.chunks) {
    if (chunk.token_ids_size() > 0 && chunk.output_index() != next_index) {
      return absl::StrCat("a chunk starts at output index ", chunk.output_index(), ", expected ", next_index);
    }
    next_index += static_cast<uint32_t>(chunk.token_ids_size());
    if (request.sampling().has_logprobs() && chunk.logprobs_size() != chunk.token_ids_size()) {
      return absl::StrCat(chunk.logprobs_size(), " logprobs for ", chunk.token_ids_size(), " tokens");
    }
  }
  if (chunk_after_finish) return "a chunk after the finish message";
  const int expected = reply.status.ok() ? 1 : 0;
  if (finishes != expected) {
    return absl::StrCat(finishes, " finish messages with status ", reply.status.error_code());
  }
  if (reply.status.ok() && reply.finish.usage().completion_tokens() != reply.answer.token_ids.size()) {
    return absl::StrCat("usage says ", reply.finish.usage().completion_tokens(), " tokens, ",
                        reply.answer.token_ids.size(), " came");
  }
  return "";
}

}  // namespace

void PrintTo(const Answer& answer, std::ostream* out) {
  *out << "code " << answer.code << ", reason " << answer.reason << ", " << answer.token_ids.size() << " tokens ["
       << absl::StrJoin(answer.token_ids, " ") << "], " << answer.logprobs.size() << " logprobs, text \"" << answer.text
       << "\"";
}

TestClient::TestClient(const std::string& target) {
  const auto channel = MakeChannel(target);
  inference_ = v1::Inference::NewStub(channel);
  admin_ = v1::Admin::NewStub(channel);
}

Reply TestClient::Generate(const v1::GenerateRequest& request, const CallOptions& options) const {
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(options.timeout));
  context.set_wait_for_ready(options.wait_for_ready);
  const auto reader = inference_->Generate(&context, request);
  Reply reply;
  v1::GenerateResponse response;
  int finishes = 0;
  bool chunk_after_finish = false;
  while (reader->Read(&response)) {
    if (response.has_finish()) {
      ++finishes;
      reply.finish = response.finish();
      continue;
    }
    chunk_after_finish |= finishes > 0;
    reply.chunks.push_back(response.chunk());
    reply.chunk_times.push_back(SteadyTime::Now());
    Append(response.chunk(), reply.answer);
    if (options.on_chunk) options.on_chunk(response.chunk());
    if (static_cast<int>(reply.chunks.size()) == options.cancel_after_chunks) context.TryCancel();
  }
  reply.status = reader->Finish();
  reply.answer.code = reply.status.error_code();
  reply.answer.reason = reply.finish.reason();
  reply.broken_promise = BrokenPromise(request, reply, finishes, chunk_after_finish);
  return reply;
}

std::vector<Reply> TestClient::GenerateAll(const std::vector<v1::GenerateRequest>& requests, const CallOptions& options,
                                           size_t at_once) const {
  std::vector<Reply> replies(requests.size());
  std::atomic<size_t> next = 0;
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < std::min(at_once, requests.size()); ++thread) {
    threads.emplace_back([&] {
      for (size_t i = next++; i < requests.size(); i = next++) replies[i] = Generate(requests[i], options);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return replies;
}

v1::GenerateRequest GreedyRequest(const std::string& prompt, uint32_t max_tokens) {
  v1::GenerateRequest request;
  request.set_prompt(prompt);
  request.mutable_sampling()->set_temperature(0);
  request.mutable_sampling()->set_max_tokens(max_tokens);
  request.mutable_sampling()->set_ignore_eos(true);
  return request;
}

}  // namespace baton::testing
