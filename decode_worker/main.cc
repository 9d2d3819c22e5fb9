// SPDX-License-Identifier: Apache-2.0
// baton-decode: receives prompts' KV from prefill workers and streams tokens. With --role both, computes prompts too.

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "common/options.h"
#include "common/shutdown.h"
#include "common/status_macros.h"
#include "decode_worker/decode_service.h"
#include "kvtransfer/endpoints/endpoints.h"
#include "worker/compute.h"
#include "worker/host.h"
#include "worker/options.h"

namespace baton {
namespace {

struct DecodeOptions {
  WorkerOptions worker;
  std::string role = "decode";
  int max_bypass = CapacityLedger::Limits{}.max_bypass;
  int growth_watermark_pages = CapacityLedger::Limits{}.growth_watermark_pages;

  void AddTo(OptionSet& set) {
    worker.AddTo(set);
    set.AddChoice("role", &role, {"decode", "both"}, "both: computes prompts too, and serves without prefill workers");
    set.Add("handoff-listen", &worker.transport.listen_address, "host:port where other workers hand over");
    set.Add("handoff-advertise", &worker.transport.advertise_address,
            "host:port for other workers' connections (default: the address listened on)");
    set.Add("max-bypass", &max_bypass,
            "how often younger requests may pass a reservation or local prompt that waits for room");
    set.Add("growth-watermark-pages", &growth_watermark_pages,
            "most free pages that a grant leaves for running sequences, one for each");
  }
  CapacityLedger::Limits Capacity() const {
    return {.max_sequences = worker.schedule.max_sequences,
            .max_waiting_reservations = worker.max_queue,
            .max_bypass = max_bypass,
            .growth_watermark_pages = growth_watermark_pages};
  }
};

absl::Status Run(DecodeOptions& options) {
  const bool both = options.role == "both";
  const absl::Status checked = options.worker.Finalize(options.role, /*needs_secret=*/!both);
  BATON_RETURN_IF_ERROR(InitLogging(options.worker.log, options.worker.worker_id));  // what is wrong may be a JSON line
  BATON_RETURN_IF_ERROR(checked);
  ShutdownSignal signal;

  // Without a secret, a worker of role both receives no handoffs.
  const bool receives = !options.worker.transport.secret.empty();
  BATON_ASSIGN_OR_RETURN(
      const std::unique_ptr<WorkerHost> host,
      WorkerHost::Create(options.worker, both ? v1::WORKER_ROLE_BOTH : v1::WORKER_ROLE_DECODE, receives));
  Compute compute(host->compute_parts(), options.worker.schedule, options.Capacity());
  std::unique_ptr<HandoffEndpoints> endpoints;
  if (receives) {
    // All attempts that the gate admits, and as many that are ending.
    BATON_ASSIGN_OR_RETURN(
        endpoints,
        HandoffEndpoints::Create(host->identity(), {.max_attempts = 2 * options.worker.max_attempts()},
                                 host->transport(), host->pool(), compute.capacity(), compute.ReceiverEvents()));
  }
  HandoffReceiver* const receiver = receives ? &endpoints->receiver() : nullptr;
  compute.Start(receives ? &endpoints->sender() : nullptr, receiver);
  DecodeService service(host->limits(),
                        {.gate = host->gate(), .compute = &compute, .receiver = receiver, .prefills_locally = both});
  const absl::Status status =
      host->Serve(signal, {.service = &service,
                           .service_name = v1::DecodeWorker::service_full_name(),
                           .stop_accepting =
                               [&] {
                                 compute.Post([](Scheduler& scheduler) { scheduler.StartDraining(); });
                                 if (receiver != nullptr) receiver->StartDraining();
                               },
                           .fail_all = [&] { compute.Post([](Scheduler& scheduler) { scheduler.FailAll(); }); }});
  compute.Stop();
  host->StopIo();
  return status;
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  baton::DecodeOptions options;
  options.worker.listen = "127.0.0.1:50071";
  options.worker.metrics_listen = "127.0.0.1:9402";
  options.worker.transport.listen_address = "127.0.0.1:50081";
  baton::OptionSet set("baton-decode", "Receives prompts' KV pages from prefill workers and streams tokens.");
  options.AddTo(set);
  return set.RunProgram(argc, argv, [&] { return baton::Run(options); });
}
