// Names the content of full KV pages. Its own target: the router hashes prompts too.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/types.h"

namespace baton {

using PageHash = std::array<uint8_t, 32>;

// SHA-256 of each full page of `tokens`, each chained to the one before; the chain starts from `salt` (model, adapter
// and tenant, each with its length, see PageHashSalt), so that equal hashes mean equal content for the same owner.
std::vector<PageHash> HashPages(std::string_view salt, std::span<const TokenId> tokens, int page_tokens);
std::string PageHashSalt(std::string_view model, std::string_view adapter, std::string_view tenant);

}  // namespace baton
