// SPDX-License-Identifier: Apache-2.0
// baton-decode: receives prompts' KV from prefill workers and streams tokens. With --role both, computes prompts too.

#include <string>

#include "common/options.h"
#include "decode_worker/worker_process.h"
#include "worker/options.h"

int main(int argc, char** argv) {
  baton::WorkerOptions options;
  options.listen = "127.0.0.1:50071";
  options.metrics_listen = "127.0.0.1:9402";
  options.transport.listen_address = "127.0.0.1:50081";
  std::string role = "decode";
  baton::OptionSet set("baton-decode", "Receives prompts' KV pages from prefill workers and streams tokens.");
  options.AddTo(set, "host:port where other workers hand over");
  set.AddChoice("role", &role, {"decode", "both"},
                "role at the start. both: computes prompts too, and serves without prefill workers");
  return set.RunProgram(argc, argv, [&] {
    return baton::RunWorker(options, role == "both" ? baton::v1::WORKER_ROLE_BOTH : baton::v1::WORKER_ROLE_DECODE);
  });
}
