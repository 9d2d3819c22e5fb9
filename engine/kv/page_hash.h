// SPDX-License-Identifier: Apache-2.0
// Page names: hashes of the content of full KV pages. A target of its own, because the router hashes prompts, too. Pure
// functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/types.h"

namespace baton {

using PageHash = std::array<uint8_t, 32>;

// The first 8 bytes of a hash, for uses where a collision costs only speed.
using PageKey = uint64_t;
PageKey ToKey(const PageHash& hash);

// Returns the root of the hash chain: the hash of the owner (model, adapter, tenant). Each full page's hash is SHA-256
// over the previous page's hash (or the root) and the page's tokens. Equal hashes mean equal content of the same owner.
PageHash PageHashRoot(std::string_view model, std::string_view adapter, std::string_view tenant);
// Appends the hashes of full pages of `tokens` that `hashes` lacks. `hashes` holds the hashes of the first pages. With
// several KV groups (layout.h), pages of other groups than the first have the first group's hash, marked with the
// group.
void ExtendPageHashes(const PageHash& root, std::span<const TokenId> tokens, int page_tokens,
                      std::vector<PageHash>& hashes, int groups = 1);

}  // namespace baton
