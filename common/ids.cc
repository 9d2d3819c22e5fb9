// SPDX-License-Identifier: Apache-2.0
#include "common/ids.h"

#include <random>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace baton {
namespace {

uint64_t RandomBits() {
  thread_local std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

}  // namespace

RequestId RequestId::Random() { return {RandomBits(), RandomBits()}; }

absl::StatusOr<RequestId> RequestId::FromBytes(std::string_view bytes) {
  if (bytes.size() != 16) {
    return absl::InvalidArgumentError(absl::StrCat("request_id has ", bytes.size(), " bytes, expected 16"));
  }
  RequestId id;
  for (int i = 0; i < 8; ++i) id.high = (id.high << 8) | static_cast<uint8_t>(bytes[i]);
  for (int i = 8; i < 16; ++i) id.low = (id.low << 8) | static_cast<uint8_t>(bytes[i]);
  return id;
}

std::string RequestId::ToBytes() const {
  std::string bytes(16, '\0');
  for (int i = 0; i < 8; ++i) {
    bytes[i] = static_cast<char>(high >> (56 - 8 * i));
    bytes[8 + i] = static_cast<char>(low >> (56 - 8 * i));
  }
  return bytes;
}

std::string RequestId::ToString() const {
  return absl::StrCat(absl::Hex(high, absl::kZeroPad16), absl::Hex(low, absl::kZeroPad16));
}

std::string AttemptKey::ToString() const { return absl::StrCat(request.ToString(), "/", attempt); }

uint64_t RandomEpoch() { return RandomBits() | 1; }

}  // namespace baton
