// SPDX-License-Identifier: Apache-2.0
#include "common/sha256.h"

#include <openssl/evp.h>

#include <cstdlib>

#include "absl/strings/escaping.h"

namespace baton {
namespace {

void Require(bool ok) {
  if (!ok) std::abort();
}

}  // namespace

struct Sha256::Context {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> evp{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  Require(context_->evp != nullptr && EVP_DigestInit_ex(context_->evp.get(), EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;

void Sha256::Add(std::span<const std::byte> data) {
  Require(EVP_DigestUpdate(context_->evp.get(), data.data(), data.size()) == 1);
}

Sha256::Digest Sha256::Finish() {
  Digest digest;
  unsigned bytes = 0;
  EVP_MD_CTX* const evp = context_->evp.get();
  Require(EVP_DigestFinal_ex(evp, digest.data(), &bytes) == 1 && bytes == digest.size());
  Require(EVP_DigestInit_ex(evp, nullptr, nullptr) == 1);
  return digest;
}

std::string ToHex(std::span<const uint8_t> digest) {
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

}  // namespace baton
