// The text files of a model that say how text becomes tokens and back. Workers have them, routers get them delivered
// and know them by their fingerprint.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace baton {

// File name to content: tokenizer.json, and if the model has them tokenizer_config.json, generation_config.json,
// chat_template.jinja and additional_chat_templates/tool_use.jinja.
using AssetFiles = std::map<std::string, std::string>;

// Valid as long as `files`.
inline std::string_view FileOrEmpty(const AssetFiles& files, const std::string& name) {
  const auto it = files.find(name);
  return it == files.end() ? std::string_view() : std::string_view(it->second);
}

// SHA-256 (hex) over, for each file in the order of names: name, NUL, size as 8 bytes big-endian, content.
std::string AssetsFingerprint(const AssetFiles& files);

}  // namespace baton
