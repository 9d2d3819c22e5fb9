// The flags of a generation request, shared by the commands that send one.
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

// Holds what the flags gave; unset ones stay unset in the request, so that the model's own defaults apply.
class GenerationFlags {
 public:
  // `this` must outlive the parse.
  void AddTo(CLI::App& app);

  // Fills model, label and sampling. INVALID_ARGUMENT names the flag.
  absl::Status Fill(v1::GenerateRequest& request) const;

  // For the whole answer; infinite when not given.
  absl::StatusOr<absl::Duration> timeout() const;

 private:
  std::string model_;
  std::string label_;
  std::string cache_salt_;
  std::string timeout_;
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

// INVALID_ARGUMENT, naming `flag`, unless `text` is UTF-8: gRPC would refuse it in words that name nothing.
absl::Status CheckUtf8(const char* flag, const std::string& text);

// "250ms", "3s". INVALID_ARGUMENT, naming `flag`, otherwise.
absl::StatusOr<absl::Duration> ParseTimeout(const char* flag, const std::string& text);

}  // namespace baton
