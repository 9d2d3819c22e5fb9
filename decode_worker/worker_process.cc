// SPDX-License-Identifier: Apache-2.0
#include "decode_worker/worker_process.h"

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "common/log.h"
#include "common/shutdown.h"
#include "common/status_macros.h"
#include "decode_worker/decode_service.h"
#include "kvtransfer/endpoints/endpoints.h"
#include "prefill_worker/prefill_service.h"
#include "worker/compute.h"
#include "worker/host.h"

namespace baton {
namespace {

// Without --handoff-listen, other workers reach this worker at the host of --listen, at the port of --handoff-advertise
// or at any free port. If --listen binds all addresses and none is advertised, others cannot reach this worker, and it
// keeps its role.
absl::Status SetHandoffAddress(WorkerOptions& options) {
  TransportOptions& transport = options.transport;
  if (!transport.listen_address.empty()) return absl::OkStatus();
  BATON_ASSIGN_OR_RETURN(const HostPort listen, ParseHostPort(options.listen));
  int port = 0;
  if (!transport.advertise_address.empty()) {
    BATON_ASSIGN_OR_RETURN(const HostPort advertised,
                           OfOption("handoff-advertise", ParseHostPort(transport.advertise_address)));
    port = advertised.port;
  } else if (listen.host == "0.0.0.0" || listen.host == "::") {
    if (transport.local_host.empty()) transport.local_host = listen.host;
    return absl::OkStatus();
  }
  const bool is_ipv6 = absl::StrContains(listen.host, ':');
  transport.listen_address = absl::StrCat(is_ipv6 ? "[" : "", listen.host, is_ipv6 ? "]:" : ":", port);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunWorker(WorkerOptions& options, v1::WorkerRole role) {
  const absl::Status checked = options.Finalize(RoleName(role), /*needs_secret=*/role != v1::WORKER_ROLE_BOTH);
  BATON_RETURN_IF_ERROR(InitLogging(options.log, options.worker_id));  // what is wrong may be a JSON line
  BATON_RETURN_IF_ERROR(checked);
  BATON_RETURN_IF_ERROR(SetHandoffAddress(options));
  ShutdownSignal signal;

  // Without a secret, a worker of role both takes part in no handoffs, and keeps its role.
  const bool hands_over = !options.transport.secret.empty();
  BATON_ASSIGN_OR_RETURN(const std::unique_ptr<WorkerHost> host, WorkerHost::Create(options, role, hands_over));
  Compute compute(host->compute_parts(), options.schedule, options.Capacity(role));
  std::unique_ptr<HandoffEndpoints> endpoints;
  if (hands_over) {
    // All attempts that the gate admits, and as many that are ending.
    BATON_ASSIGN_OR_RETURN(
        endpoints,
        HandoffEndpoints::Create(host->identity(), {.max_attempts = 2 * options.max_attempts()}, host->transport(),
                                 host->pool(), compute.capacity(), compute.ReceiverEvents()));
  }
  HandoffReceiver* const receiver = hands_over ? &endpoints->receiver() : nullptr;
  compute.Start(hands_over ? &endpoints->sender() : nullptr, receiver);
  PrefillService prefill(host->limits(v1::WORKER_ROLE_PREFILL), host->gate(), &compute);
  DecodeService decode(host->limits(v1::WORKER_ROLE_DECODE),
                       {.gate = host->gate(), .compute = &compute, .receiver = receiver});
  const WorkerHost::Work work{
      .services = {&prefill, &decode},
      .service_names = {v1::PrefillWorker::service_full_name(), v1::DecodeWorker::service_full_name()},
      .start_draining =
          [&] {
            compute.Post([](Scheduler& scheduler) { scheduler.StartDraining(); });
            if (receiver != nullptr) receiver->StartDraining();
          },
      .end_waiting =
          [&](const char* why) { compute.Post([why](Scheduler& scheduler) { scheduler.FailWaiting(why); }); },
      .stop_draining =
          [&] {
            compute.Post([](Scheduler& scheduler) { scheduler.StopDraining(); });
            if (receiver != nullptr) receiver->StopDraining();
          },
      .end_attempts = [&](const char* why) { compute.Post([why](Scheduler& scheduler) { scheduler.FailAll(why); }); },
      .take_role = [&](v1::WorkerRole taken) { compute.SetCapacity(options.Capacity(taken)); }};
  const absl::Status status = host->Serve(signal, work);
  compute.Stop();
  host->StopIo();
  return status;
}

}  // namespace baton
