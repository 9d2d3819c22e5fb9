// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/bench_target.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/load/grpc_target.h"
#include "cli/load/openai_target.h"
#include "common/status_macros.h"
#include "engine/formats/file.h"

namespace baton {
namespace {

constexpr size_t kMaxKeyBytes = 64 << 10;

// Returns the model to send load to: the named one, or the only one served.
absl::StatusOr<ServedModel> ChooseModel(const std::vector<ServedModel>& served, const std::string& name,
                                        const std::string& target) {
  for (const ServedModel& model : served) {
    if (model.name == name || (name.empty() && served.size() == 1)) return model;
  }
  const std::string names =
      absl::StrJoin(served, ", ", [](std::string* out, const ServedModel& model) { absl::StrAppend(out, model.name); });
  return absl::NotFoundError(absl::StrCat(target, " serves ", names.empty() ? "no model" : names,
                                          name.empty() ? ": expected --model" : absl::StrCat(", not ", name)));
}

absl::StatusOr<std::string> ApiKey(const std::string& file) {
  if (file.empty()) {
    const char* const key = std::getenv("OPENAI_API_KEY");  // NOLINT(concurrency-mt-unsafe): nothing sets variables
    return key != nullptr ? std::string(key) : std::string();
  }
  BATON_ASSIGN_OR_RETURN(std::string key, ReadTextFile(file, kMaxKeyBytes));
  absl::StripAsciiWhitespace(&key);
  const bool is_text =
      std::ranges::all_of(key, [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); });
  if (key.empty() || !is_text)
    return absl::InvalidArgumentError(absl::StrCat(file, ": expected one line with an API key"));
  return key;
}

absl::StatusOr<ServedModel> ConnectRouter(const BenchServeFlags& flags, const Console& console, BenchTarget& bench) {
  BATON_ASSIGN_OR_RETURN(bench.client, Client::Connect(flags.target, kConnectTimeout, *console.interrupt));
  bench.target = std::make_unique<GrpcTarget>(*bench.client);
  BATON_ASSIGN_OR_RETURN(const v1::ListModelsResponse served, bench.client->ListModels(kCallTimeout));
  std::vector<ServedModel> models;
  for (const v1::ModelInfo& model : served.models()) {
    models.push_back(
        {.name = model.name(), .context_tokens = model.max_context_tokens(), .vocab_size = model.vocab_size()});
  }
  return ChooseModel(models, flags.workload.model, flags.target);
}

absl::StatusOr<ServedModel> ConnectOpenAi(const BenchServeFlags& flags, BenchTarget& bench) {
  OpenAiOptions options = {
      .url = flags.target, .api_key = {}, .completions = {.wants_token_ids = flags.workload.turns > 1}};
  BATON_ASSIGN_OR_RETURN(options.api_key, ApiKey(flags.api_key_file));
  BATON_ASSIGN_OR_RETURN(auto target, OpenAiTarget::Create(options, kConnectTimeout));
  const absl::StatusOr<std::vector<ServedModel>> served = target->Models(kCallTimeout);
  bench.target = std::move(target);
  // A server without a list of models may still serve the model that --model names.
  ServedModel model = {.name = flags.workload.model};
  if (!absl::IsNotFound(served.status()) || model.name.empty()) {
    BATON_RETURN_IF_ERROR(served.status());
    BATON_ASSIGN_OR_RETURN(model, ChooseModel(*served, flags.workload.model, flags.target));
  }
  if (model.vocab_size == 0 && !flags.vocab_size) {
    return UsageError(absl::InvalidArgumentError(
        absl::StrCat(flags.target, " does not tell the size of ", model.name, "'s vocabulary: expected --vocab-size")));
  }
  return model;
}

}  // namespace

absl::StatusOr<BenchTarget> ConnectBenchTarget(const BenchServeFlags& flags, const Console& console) {
  BenchTarget bench;
  BATON_ASSIGN_OR_RETURN(const ServedModel model, *flags.api == LoadApi::kOpenAi
                                                      ? ConnectOpenAi(flags, bench)
                                                      : ConnectRouter(flags, console, bench));
  bench.model = model.name;
  bench.vocab_size = flags.vocab_size.value_or(static_cast<uint32_t>(model.vocab_size));
  bench.max_context_tokens =
      flags.max_context_tokens.value_or(static_cast<int>(std::min<int64_t>(model.context_tokens, INT32_MAX)));
  return bench;
}

}  // namespace baton
