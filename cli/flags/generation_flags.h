// SPDX-License-Identifier: Apache-2.0
// The flags of a generation request, for the commands that send such requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "baton/v1/inference.pb.h"

namespace CLI {
class App;
}

namespace baton {

// Holds the values of the flags. A flag that is not given stays unset in the request: the model's own default applies.
class GenerationFlags {
 public:
  // Adds the flags. `this` must outlive the parse.
  void AddTo(CLI::App& app);

  // Sets model, label, cache salt and sampling in `request`. INVALID_ARGUMENT names the flag.
  absl::Status Fill(v1::GenerateRequest& request) const;

  // Returns the time limit of the whole answer; infinite when not given.
  absl::StatusOr<absl::Duration> timeout() const;

 private:
  std::string model_;
  std::string label_;
  std::string cache_salt_;
  std::string tenant_;
  std::string timeout_;
  std::string ttft_slo_;
  std::string tpot_slo_;
  std::optional<v1::Priority> priority_;
  std::optional<v1::WhenLate> when_late_;
  std::optional<float> temperature_;
  std::optional<int32_t> top_k_;
  std::optional<float> top_p_;
  std::optional<float> min_p_;
  std::optional<float> repetition_penalty_;
  std::optional<float> presence_penalty_;
  std::optional<float> frequency_penalty_;
  std::vector<std::string> logit_bias_;
  std::optional<uint64_t> seed_;
  std::optional<uint32_t> max_tokens_;
  std::optional<uint32_t> min_tokens_;
  std::vector<std::string> stop_;
  std::vector<int32_t> stop_token_ids_;
  std::optional<bool> ignore_eos_;
  std::optional<bool> skip_special_tokens_;
  std::optional<uint32_t> logprobs_;
};

// Fails with INVALID_ARGUMENT that names `flag` unless `text` is UTF-8. gRPC's own refusal would not name the flag.
absl::Status CheckUtf8(const char* flag, const std::string& text);

// Parses a duration such as "250ms" or "3s". INVALID_ARGUMENT names `flag`.
absl::StatusOr<absl::Duration> ParseTimeout(const char* flag, const std::string& text);

}  // namespace baton
