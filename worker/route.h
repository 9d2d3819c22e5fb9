// SPDX-License-Identifier: Apache-2.0
// An attempt's way through a worker, and the routes that a role takes. Values: safe to use from any thread.
#pragma once

#include <cstdint>

namespace baton {

enum class Route : uint8_t {
  kHandOver = 1,  // computes the prompt here, hands the sequence over
  kReceive = 2,   // takes the sequence over, decodes here
  kLocal = 4,     // computes the prompt and decodes here
};

// A set of routes.
class Routes {
 public:
  static constexpr Routes None() { return Routes(0); }
  static constexpr Routes All() { return Routes(7); }
  constexpr Routes With(Route route) const { return Routes(bits_ | static_cast<uint8_t>(route)); }
  constexpr bool Contains(Route route) const { return (bits_ & static_cast<uint8_t>(route)) != 0; }
  bool operator==(const Routes&) const = default;

 private:
  constexpr explicit Routes(int bits) : bits_(static_cast<uint8_t>(bits)) {}
  uint8_t bits_;
};

}  // namespace baton
