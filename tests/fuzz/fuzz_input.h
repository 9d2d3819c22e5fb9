// SPDX-License-Identifier: Apache-2.0
// Helpers of the fuzz targets. Each target defines LLVMFuzzerTestOneInput, which libFuzzer calls with one input after
// the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string_view>

#include "absl/status/status.h"

namespace baton::fuzz {

inline std::string_view Text(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

// Ends the program, so that libFuzzer keeps the input, unless `condition` holds.
inline void Check(bool condition, std::string_view what) {
  if (condition) return;
  std::cerr << "not so: " << what << std::endl;
  std::abort();
}

// The statuses that bad input may get.
inline void CheckRefusal(const absl::Status& status) {
  Check(status.ok() || absl::IsInvalidArgument(status) || absl::IsUnimplemented(status) ||
            absl::IsResourceExhausted(status),
        status.ToString());
  Check(status.ok() || !status.message().empty(), "a refusal says why");
}

// Every byte that the tensors claim can be read.
template <typename Tensors>
void ReadAll(const Tensors& tensors) {
  unsigned sum = 0;
  for (const auto& tensor : tensors) {
    for (const std::byte byte : tensor.data) sum += static_cast<unsigned>(byte);
  }
  volatile unsigned sink = sum;
  static_cast<void>(sink);
}

}  // namespace baton::fuzz
