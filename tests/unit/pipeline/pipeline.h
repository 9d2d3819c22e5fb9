// SPDX-License-Identifier: Apache-2.0
// Prefill and decode workers in one process: the real schedulers, models, pools and endpoints of both sides. The
// in-process transport joins the workers, and a caller plays the router.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "baton/v1/worker.pb.h"
#include "common/mutex.h"
#include "kvtransfer/endpoints/endpoints.h"
#include "tests/inproc/inproc_transport.h"
#include "worker/compute.h"
#include "worker/event_sink.h"
#include "worker/load.h"
#include "worker/metrics.h"

namespace baton::testing {

using PrefillSink = EventSink<v1::PrefillEvent>;
using DecodeSink = EventSink<v1::DecodeEvent>;
using MigrationSink = PrefillSink;

struct NodeOptions {
  std::string model_folder;
  int pages = 256;
  int threads = 1;
  ScheduleLimits schedule;
  int max_bypass = 8;  // of a decode node
  int growth_watermark_pages = 8;
  absl::Duration peer_timeout = absl::Milliseconds(600);
  bool kv_groups = false;  // LoadInGroups
};

// The parts of both kinds of node.
class Node {
 public:
  PagePool& pool() { return *pool_; }
  InprocTransport& transport() { return *transport_; }
  Model& model() { return *model_; }
  const std::string& name() const { return name_; }
  const prometheus::Registry& registry() const { return *registry_; }
  // No page in use or quarantined, within a deadline.
  bool BecomesEmpty();

 protected:
  Node(std::string name, const NodeOptions& options, int max_bypass);
  HandoffIdentity identity() const { return {name_, 1, model_->numerics_id()}; }

  const std::string name_;
  const NodeOptions options_;
  std::shared_ptr<prometheus::Registry> registry_;
  WorkerMetrics metrics_;
  WorkerLoadBoard load_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<InprocTransport> transport_;
  std::unique_ptr<PagePool> pool_;
  std::unique_ptr<Compute> compute_;
};

class PrefillNode : public Node {
 public:
  PrefillNode(std::string name, const NodeOptions& options);
  ~PrefillNode();
  void Submit(const Attempt& attempt, const HandoffTarget& target, std::shared_ptr<PrefillSink> sink);
  void Cancel(const AttemptKey& key);

 private:
  std::unique_ptr<HandoffSender> sender_;
};

class DecodeNode : public Node {
 public:
  DecodeNode(std::string name, const NodeOptions& options);
  ~DecodeNode();
  absl::Status Open(const Attempt& attempt, bool local, std::shared_ptr<DecodeSink> sink);
  void Cancel(const AttemptKey& key, bool local);
  void Migrate(const MigrationOrder& order, std::shared_ptr<MigrationSink> sink);
  void CancelMigration(const MigrationOrder& order);
  void StartDraining();
  HandoffTarget target() const { return {name_, 1, transport_->address()}; }
  HandoffReceiver& receiver() { return endpoints_->receiver(); }

 private:
  std::unique_ptr<HandoffEndpoints> endpoints_;
};

struct Request {
  std::vector<TokenId> prompt;
  SamplingParams sampling;
  bool shares_pages = true;
};

struct Answer {
  std::vector<TokenId> tokens;
  std::vector<SampledToken> logprobs;  // one per token when asked for
  int attempts = 0;
  int preemptions = 0;
  uint32_t cached_tokens = 0;  // by the worker that computed the prompt, in the last attempt
  uint64_t kv_bytes = 0;       // handed over in the last attempt
  std::string error;           // empty: finished

  bool SameBits(const Answer& other) const;
};

SampledToken ToSampled(const v1::TokenEvent& event);

// How to serve. Without `prefill` the decode nodes compute prompts themselves. Attempt n goes to decode[(n - 1) %
// size].
struct Placement {
  PrefillNode* prefill = nullptr;
  std::vector<DecodeNode*> decode;
  // Called when this many tokens have come; true: cancel the request. Null: never.
  std::function<bool(size_t tokens)> cancel = nullptr;
};

// Blocks until the request is finished, cancelled or out of attempts.
Answer Serve(const Placement& placement, const Request& request);
// All at once, a thread each.
std::vector<Answer> ServeAll(const Placement& placement, const std::vector<Request>& requests);

// Returns each request's answer when no other request runs, nothing is handed over and no pages are shared.
std::vector<Answer> AnswersAlone(std::vector<Request> requests);
void ExpectSame(const std::vector<Answer>& answers, const std::vector<Answer>& reference);

// A node with a tiny model.
inline constexpr int kTinyVocab = 64;
NodeOptions TinyNode(int pages = 256);

// A mix of greedy and seeded requests, with penalties, logprobs and biases; the same for the same arguments.
std::vector<Request> MixedRequests(int count, int vocab_size, int max_prompt, int max_output);

}  // namespace baton::testing
