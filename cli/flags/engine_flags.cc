// SPDX-License-Identifier: Apache-2.0
#include "cli/flags/engine_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "cli/flags/flags.h"

namespace baton {
namespace {

// Shows the progress on one line, and erases the line at the end.
LoadProgress ShowLoading(const Console& console) {
  return [&console, shown = -1](uint64_t loaded_bytes, uint64_t total_bytes) mutable {
    const int percent = static_cast<int>(loaded_bytes * 100 / std::max<uint64_t>(total_bytes, 1));
    if (percent == shown) return;
    shown = percent;
    *console.err << (percent < 100 ? absl::StrCat("\rloading ", percent, " %") : "\r\x1b[K") << std::flush;
  };
}

}  // namespace

void AddEngineFlags(CLI::App& app, const Console& console, ModelOptions* options) {
  if (console.err_is_terminal) options->progress = ShowLoading(console);
  AddWholeNumber(app, "--threads", &options->threads, "compute threads (default: all CPUs that this process may use)",
                 1, 1024);
  app.add_option("--kernels", options->kernels, "family of compute kernels, as for the workers")
      ->default_str(options->kernels);
  AddChoice(app, "--quantize", &options->quantize, "round float weights while loading",
            Choices<std::optional<TensorType>>{
                {"off", std::nullopt}, {"int8", TensorType::kQ8_0}, {"int4", TensorType::kQ4_0}})
      ->default_str("off");
  Choices<KvType> kv_types;
  for (const KvType type : kKvTypes) kv_types.emplace_back(Name(type), type);
  AddChoice(app, "--kv-dtype", &options->kv_dtype, "type of the KV cache (default: the workers' auto)", kv_types);
}

}  // namespace baton
