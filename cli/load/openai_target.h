// SPDX-License-Identifier: Apache-2.0
// Sends load to a server that speaks OpenAI's completions API over HTTP/1.1, with answers as server-sent events.
//
// One I/O thread owns all connections and takes the times: an event arrived when the socket's read returned. Idle
// connections are used again, as clients of such servers do. If a server has closed an idle connection, the request is
// sent once more on a new connection. No TLS. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/load/completions.h"
#include "cli/load/load_target.h"

namespace baton {

struct OpenAiOptions {
  std::string url;      // http://host:port, with the API's root if the root is not /v1
  std::string api_key;  // empty: none
  CompletionOptions completions;
};

class OpenAiTarget final : public LoadTarget {
 public:
  // Resolves the host's name. INVALID_ARGUMENT: the URL. UNAVAILABLE: the name has no address within `timeout`.
  static absl::StatusOr<std::unique_ptr<OpenAiTarget>> Create(const OpenAiOptions& options, absl::Duration timeout);
  ~OpenAiTarget() override;

  // Asks for the models served. UNAVAILABLE: the server cannot be reached or does not answer within `timeout`.
  // NOT_FOUND: the server has no such list. Call before the first Start.
  absl::StatusOr<std::vector<ServedModel>> Models(absl::Duration timeout);

  void Start(LoadRequest request, SteadyTime deadline, std::shared_ptr<RequestObserver> observer) override;
  void CancelAll() override;

 private:
  class Io;
  explicit OpenAiTarget(std::unique_ptr<Io> io);

  const std::unique_ptr<Io> io_;
};

}  // namespace baton
