// SPDX-License-Identifier: Apache-2.0
// baton-prefill: computes prompts and hands their KV over to decode workers, until it is asked to take another role.

#include "common/options.h"
#include "decode_worker/worker_process.h"
#include "worker/options.h"

int main(int argc, char** argv) {
  baton::WorkerOptions options;
  options.listen = "127.0.0.1:50061";
  options.metrics_listen = "127.0.0.1:9401";
  baton::OptionSet set("baton-prefill", "Computes prompts and hands their KV pages over to decode workers.");
  options.AddTo(set,
                "host:port where other workers hand over while this worker has another role (default: any free port on "
                "the host of --listen)");
  return set.RunProgram(argc, argv, [&] { return baton::RunWorker(options, baton::v1::WORKER_ROLE_PREFILL); });
}
