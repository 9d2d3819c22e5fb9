// Names the content of full KV pages. Its own target: the router hashes prompts too.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/types.h"

namespace baton {

using PageHash = std::array<uint8_t, 32>;

// Short for a hash where a mistake costs speed only.
using PageKey = uint64_t;
PageKey ToKey(const PageHash& hash);

// A chain of SHA-256: each full page's hash is of the one before and the page's tokens. It starts from a root, the hash
// of who may share (model, adapter and tenant), so that equal hashes mean equal content for the same owner.
PageHash PageHashRoot(std::string_view model, std::string_view adapter, std::string_view tenant);
// Appends the hashes of the full pages of `tokens` that `hashes`, those of the first pages, lacks.
void ExtendPageHashes(const PageHash& root, std::span<const TokenId> tokens, int page_tokens,
                      std::vector<PageHash>& hashes);

}  // namespace baton
