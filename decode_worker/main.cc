// baton-decode: receives prompts' KV from prefill workers and streams tokens; with --role both it computes prompts too.

#include <cstdio>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "common/options.h"
#include "common/shutdown.h"
#include "common/status_macros.h"
#include "decode_worker/decode_engine.h"
#include "decode_worker/decode_service.h"
#include "kvtransfer/endpoints/endpoints.h"
#include "worker/engine_thread.h"
#include "worker/host.h"
#include "worker/options.h"

namespace baton {
namespace {

struct DecodeOptions {
  WorkerOptions worker;
  std::string role = "decode";
  ReceiverOptions receiver;

  void AddTo(OptionSet& set) {
    worker.AddTo(set);
    set.AddChoice("role", &role, {"decode", "both"}, "both: computes prompts too, and serves without prefill workers");
    set.Add("handoff-listen", &worker.transport.listen_address, "host:port where other workers hand over");
    set.Add("handoff-advertise", &worker.transport.advertise_address,
            "host:port that other workers are told (default: where it listens)");
    set.Add("max-bypass", &receiver.max_bypass,
            "younger reservations, and prompts computed here, pass a waiting one this often (prompts once at least)");
    set.Add("growth-watermark-pages", &receiver.growth_watermark_pages,
            "free pages that a new sequence must leave for running ones to grow into, at most");
  }
};

// Events of the receiver become commands of the engine. (std::function must be copyable, so the pages travel shared.)
HandoffReceiver::Events ForwardTo(EngineThread& thread, std::unique_ptr<DecodeEngine>& engine) {
  return {
      .on_received =
          [&](ReceivedSequence received) {
            auto shared = std::make_shared<ReceivedSequence>(std::move(received));
            thread.Post([&engine, shared] { engine->OnReceived(std::move(*shared)); });
          },
      .on_failed = [&](const AttemptKey& key,
                       const Outcome& why) { thread.Post([&engine, key, why] { engine->OnHandoffFailed(key, why); }); },
      // The prefill worker's stream tells the router, which then cancels this one.
      .on_finished_by_writer = [](const AttemptKey&) {},
      .on_wait_changed = [&] { thread.Post([] {}); }};
}

absl::Status Run(int argc, char** argv) {
  DecodeOptions options;
  options.worker.listen = "127.0.0.1:50071";
  options.worker.metrics_listen = "127.0.0.1:9402";
  options.worker.transport.listen_address = "127.0.0.1:50081";
  OptionSet set("baton-decode", "Receives prompts' KV pages from prefill workers and streams tokens.");
  options.AddTo(set);
  BATON_ASSIGN_OR_RETURN(const OptionSet::Outcome outcome, set.Parse(argc, argv));
  if (outcome == OptionSet::Outcome::kAnswered) return absl::OkStatus();
  const bool both = options.role == "both";
  BATON_RETURN_IF_ERROR(options.worker.Finalize(options.role, /*needs_secret=*/!both));
  BATON_RETURN_IF_ERROR(InitLogging(options.worker.log, options.worker.worker_id));
  ShutdownSignal signal;

  // With role both and no secret it serves alone.
  const bool receives = !options.worker.transport.secret.empty();
  BATON_ASSIGN_OR_RETURN(
      const std::unique_ptr<WorkerHost> host,
      WorkerHost::Create(options.worker, both ? v1::WORKER_ROLE_BOTH : v1::WORKER_ROLE_DECODE, receives));
  EngineThread thread;
  std::unique_ptr<DecodeEngine> engine;
  std::unique_ptr<HandoffEndpoints> endpoints;
  if (receives) {
    options.receiver.max_sequences = options.worker.schedule.max_sequences;
    options.receiver.max_queue = options.worker.max_queue;
    // All that admission lets in, and as many again that are on their way out.
    options.receiver.max_attempts = 2 * options.worker.max_attempts();
    host->pool()->set_on_free([&] {
      if (endpoints != nullptr) endpoints->receiver().Poke();
      if (engine != nullptr) engine->OnPagesFree();
    });
    BATON_ASSIGN_OR_RETURN(endpoints, HandoffEndpoints::Create(host->identity(), options.receiver, host->transport(),
                                                               host->pool(), ForwardTo(thread, engine)));
  }
  HandoffReceiver* const receiver = receives ? &endpoints->receiver() : nullptr;
  engine = std::make_unique<DecodeEngine>(DecodeEngine::Parts{.model = host->model(),
                                                              .pool = host->pool(),
                                                              .receiver = receiver,
                                                              .sender = receives ? &endpoints->sender() : nullptr,
                                                              .thread = &thread,
                                                              .metrics = host->metrics(),
                                                              .load = host->load()},
                                          options.worker.schedule);
  DecodeService service(host->limits(), {.admission = host->admission(),
                                         .engine = engine.get(),
                                         .thread = &thread,
                                         .receiver = receiver,
                                         .prefills_locally = both});
  thread.Start(engine.get());
  const absl::Status status = host->Serve(signal, {.service = &service,
                                                   .service_name = v1::DecodeWorker::service_full_name(),
                                                   .stop_accepting =
                                                       [&] {
                                                         thread.Post([&] { engine->StartDraining(); });
                                                         if (receiver != nullptr) receiver->StartDraining();
                                                       },
                                                   .fail_all = [&] { thread.Post([&] { engine->FailAll(); }); }});
  // The engine first, since it computes in the transport's memory; what the transport then posts is dropped.
  thread.Stop();
  host->StopTransport();
  host->pool()->set_on_free(nullptr);
  return status;
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  const absl::Status status = baton::Run(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "baton-decode: %s\n", std::string(status.message()).c_str());
  return 1;
}
