// SPDX-License-Identifier: Apache-2.0
#include "engine/kv/page_hash.h"

#include <cassert>
#include <cstddef>
#include <string>

#include "common/sha256.h"

namespace baton {
namespace {

// Little-endian on every machine, because hashes travel between processes.
template <typename T>
void AppendLittleEndian(T value, std::string& out) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

}  // namespace

PageKey ToKey(const PageHash& hash) {
  PageKey key = 0;
  for (size_t i = 0; i < sizeof(key); ++i) key |= PageKey{hash[i]} << (8 * i);
  return key;
}

PageHash PageHashRoot(std::string_view model, std::string_view adapter, std::string_view tenant) {
  std::string owner = "baton page hash 1";
  for (const std::string_view part : {model, adapter, tenant}) {
    AppendLittleEndian(static_cast<uint64_t>(part.size()), owner);
    owner.append(part);
  }
  Sha256 hash;
  hash.Add(owner);
  return hash.Finish();
}

void ExtendPageHashes(const PageHash& root, std::span<const TokenId> tokens, int page_tokens,
                      std::vector<PageHash>& hashes, int groups) {
  assert(page_tokens > 0);
  const size_t pages = tokens.size() / page_tokens * groups;
  if (hashes.size() >= pages) return;
  hashes.reserve(pages);
  Sha256 hash;
  std::string content;
  while (hashes.size() < pages) {
    const PageHash& previous = hashes.empty() ? root : hashes[hashes.size() - groups];
    content.assign(previous.begin(), previous.end());
    for (const TokenId token : tokens.subspan(hashes.size() / groups * page_tokens, page_tokens)) {
      AppendLittleEndian(static_cast<uint32_t>(token), content);
    }
    hash.Add(content);
    const PageHash first = hash.Finish();
    for (int group = 0; group < groups; ++group) {
      hashes.push_back(first);
      hashes.back()[0] ^= static_cast<uint8_t>(group);
    }
  }
}

}  // namespace baton
