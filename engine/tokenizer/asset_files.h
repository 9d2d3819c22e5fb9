// The text files of a model that say how text becomes tokens and back. Workers have them, routers get them delivered
// and know them by their fingerprint.
#pragma once

#include <map>
#include <string>

namespace baton {

// File name to content: tokenizer.json, and if the model has them tokenizer_config.json, generation_config.json and
// chat_template.jinja.
using AssetFiles = std::map<std::string, std::string>;

// SHA-256 (hex) over, for each file in the order of names: name, NUL, size as 8 bytes big-endian, content.
std::string AssetsFingerprint(const AssetFiles& files);

}  // namespace baton
