// SPDX-License-Identifier: Apache-2.0
#include "cli/flags/engine_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/flags/flags.h"

namespace baton {
namespace {

CLI::Option* AddChoice(CLI::App& app, const std::string& name, const std::string& help,
                       const std::vector<std::string>& choices, std::function<void(const std::string&)> set) {
  const std::string list = absl::StrJoin(choices, ", ");
  return AddFlag(app, name, "NAME", absl::StrCat(help, ": ", list), [choices, list, set](const std::string& text) {
    if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
      return absl::InvalidArgumentError(absl::StrCat("expected one of ", list));
    }
    set(text);
    return absl::OkStatus();
  });
}

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
  AddWholeNumber(app, "--threads", &options->threads, "number of compute threads", 1, 1024)
      ->default_str(absl::StrCat(options->threads));
  app.add_option("--kernels", options->kernels, "family of compute kernels, as for the workers")
      ->default_str(options->kernels);
  AddChoice(app, "--quantize", "round float weights while loading", {"off", "int8", "int4"},
            [options](const std::string& text) {
              options->quantize.reset();
              if (text != "off") options->quantize = text == "int8" ? TensorType::kQ8_0 : TensorType::kQ4_0;
            })
      ->default_str("off");
  AddChoice(app, "--kv-dtype", "type of the KV cache (default: the workers' auto)",
            {"f32", "f16", "bf16", "int8", "fp8"},
            [options](const std::string& text) { options->kv_dtype = KvTypeFromName(text); });
}

}  // namespace baton
