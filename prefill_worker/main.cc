// SPDX-License-Identifier: Apache-2.0
// baton-prefill: computes prompts and hands their KV over to decode workers.

#include <memory>

#include "absl/status/status.h"
#include "common/address.h"
#include "common/options.h"
#include "common/shutdown.h"
#include "common/status_macros.h"
#include "kvtransfer/endpoints/endpoints.h"
#include "prefill_worker/prefill_service.h"
#include "worker/compute.h"
#include "worker/host.h"
#include "worker/options.h"

namespace baton {
namespace {

absl::Status Run(WorkerOptions& options) {
  const absl::Status checked = options.Finalize("prefill", /*needs_secret=*/true);
  BATON_RETURN_IF_ERROR(InitLogging(options.log, options.worker_id));  // what is wrong may be a JSON line
  BATON_RETURN_IF_ERROR(checked);
  // UCX opens ports even without incoming handoffs. The ports belong on the host at which the router connects.
  if (options.transport.local_host.empty()) {
    BATON_ASSIGN_OR_RETURN(const HostPort listen, ParseHostPort(options.listen));
    options.transport.local_host = listen.host;
  }
  ShutdownSignal signal;

  BATON_ASSIGN_OR_RETURN(const std::unique_ptr<WorkerHost> host,
                         WorkerHost::Create(options, v1::WORKER_ROLE_PREFILL, /*with_transport=*/true));
  BATON_ASSIGN_OR_RETURN(const std::unique_ptr<HandoffSender> sender,
                         HandoffSender::Create(host->identity(), host->transport(), host->pool()));
  // No prompt passes an older prompt. Sequences do not grow on a prefill worker: no pages are left for growth.
  Compute compute(host->compute_parts(), options.schedule,
                  {.max_sequences = options.schedule.max_sequences,
                   .max_waiting_reservations = 0,
                   .max_bypass = 0,
                   .growth_watermark_pages = 0});
  compute.Start(sender.get(), /*receiver=*/nullptr);
  PrefillService service(host->limits(), host->gate(), &compute);
  const absl::Status status =
      host->Serve(signal, {.service = &service,
                           .service_name = v1::PrefillWorker::service_full_name(),
                           .stop_accepting = [] {},
                           .fail_all = [&] { compute.Post([](Scheduler& scheduler) { scheduler.FailAll(); }); }});
  compute.Stop();
  host->StopIo();
  return status;
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  baton::WorkerOptions options;
  options.listen = "127.0.0.1:50061";
  options.metrics_listen = "127.0.0.1:9401";
  baton::OptionSet set("baton-prefill", "Computes prompts and hands their KV pages over to decode workers.");
  options.AddTo(set);
  return set.RunProgram(argc, argv, [&] { return baton::Run(options); });
}
