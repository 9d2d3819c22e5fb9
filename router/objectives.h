// SPDX-License-Identifier: Apache-2.0
// The times that a request should keep, and the defaults for requests that give none. Values: copies are cheap.
#pragma once

#include <map>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace baton::router {

// Times that a request should keep; 0: none.
struct Objectives {
  absl::Duration ttft;  // request received to first token sent
  absl::Duration tpot;  // mean time per output token after the first
  bool any() const { return ttft > absl::ZeroDuration() || tpot > absl::ZeroDuration(); }
};

// The objectives of interactive requests without objectives of their own.
class DefaultObjectives {
 public:
  // Reads entries such as "llama=500ms/30ms": the model's name, its objectives for TTFT and TPOT. Other models have
  // those of `others`. INVALID_ARGUMENT names the entry.
  static absl::StatusOr<DefaultObjectives> Parse(Objectives others, std::span<const std::string> entries);

  const Objectives& Of(const std::string& model) const;

 private:
  Objectives others_;
  std::map<std::string, Objectives> models_;
};

}  // namespace baton::router
