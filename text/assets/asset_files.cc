// SPDX-License-Identifier: Apache-2.0
#include "text/assets/asset_files.h"

#include <cstdint>

#include "common/sha256.h"

namespace baton {

std::string AssetsFingerprint(const AssetFiles& files) {
  Sha256 hash;
  for (const auto& [name, content] : files) {
    hash.Add({name.c_str(), name.size() + 1});
    const uint64_t bytes = content.size();
    std::string size;
    for (int shift = 56; shift >= 0; shift -= 8) size.push_back(static_cast<char>(bytes >> shift));
    hash.Add(size);
    hash.Add(content);
  }
  return ToHex(hash.Finish());
}

}  // namespace baton
