// SPDX-License-Identifier: Apache-2.0
// Incremental SHA-256. Not thread-safe.
//
// Aborts the process if OpenSSL has no SHA-256 or no memory: a wrong digest could match that of another prompt or
// model.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace baton {

class Sha256 {
 public:
  using Digest = std::array<uint8_t, 32>;

  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Add(std::span<const std::byte> data);
  void Add(std::string_view data) { Add(std::as_bytes(std::span(data))); }
  // Returns the digest of the data added since construction or the last Finish.
  Digest Finish();

 private:
  struct Context;
  const std::unique_ptr<Context> context_;
};

// Returns lower-case hexadecimal digits.
std::string ToHex(std::span<const uint8_t> digest);

}  // namespace baton
