#include "engine/kv/page_hash.h"

#include <openssl/evp.h>

#include <cassert>
#include <cstddef>
#include <cstdlib>
#include <memory>

namespace baton {
namespace {

using Digest = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

// Little-endian whatever the machine: hashes travel between processes.
template <typename T>
void AppendLittleEndian(T value, std::string& out) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

PageHash Sha256(EVP_MD_CTX* digest, std::string_view data) {
  PageHash hash{};
  unsigned size = 0;
  const bool ok = EVP_DigestInit_ex(digest, EVP_sha256(), nullptr) == 1 &&
                  EVP_DigestUpdate(digest, data.data(), data.size()) == 1 &&
                  EVP_DigestFinal_ex(digest, hash.data(), &size) == 1;
  // Fails only when the library lacks SHA-256 or memory. A made-up hash would give one prompt the pages of another.
  if (!ok || size != hash.size()) std::abort();
  return hash;
}

}  // namespace

std::vector<PageHash> HashPages(std::string_view salt, std::span<const TokenId> tokens, int page_tokens) {
  assert(page_tokens > 0);
  const Digest digest(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  std::vector<PageHash> hashes;
  hashes.reserve(tokens.size() / page_tokens);
  PageHash previous = Sha256(digest.get(), salt);
  std::string content;
  while (tokens.size() >= static_cast<size_t>(page_tokens)) {
    content.assign(previous.begin(), previous.end());
    for (const TokenId token : tokens.first(page_tokens)) AppendLittleEndian(static_cast<uint32_t>(token), content);
    previous = Sha256(digest.get(), content);
    hashes.push_back(previous);
    tokens = tokens.subspan(page_tokens);
  }
  return hashes;
}

std::string PageHashSalt(std::string_view model, std::string_view adapter, std::string_view tenant) {
  std::string salt = "baton page hash 1";
  for (const std::string_view part : {model, adapter, tenant}) {
    AppendLittleEndian(static_cast<uint64_t>(part.size()), salt);
    salt.append(part);
  }
  return salt;
}

}  // namespace baton
