// SPDX-License-Identifier: Apache-2.0
// The text files of a model that tokenization and chat need. Workers read these files from the model and serve them to
// routers. A fingerprint identifies the set of files.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace baton {

// File name -> content. Always has tokenizer.json. Optional: tokenizer_config.json, generation_config.json,
// chat_template.jinja and additional_chat_templates/tool_use.jinja.
using AssetFiles = std::map<std::string, std::string>;

// The result points into `files`.
inline std::string_view FileOrEmpty(const AssetFiles& files, const std::string& name) {
  const auto it = files.find(name);
  return it == files.end() ? std::string_view() : std::string_view(it->second);
}

// Returns a SHA-256 (hex) over all files in order of name. A file contributes name | NUL | size (uint64, big-endian) |
// content.
std::string AssetsFingerprint(const AssetFiles& files);

}  // namespace baton
