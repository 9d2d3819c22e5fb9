// SPDX-License-Identifier: Apache-2.0
// Seeded damage to bytes, for tests that no input takes the process down.
#pragma once

#include <algorithm>
#include <random>
#include <string>

namespace baton::testing {

// `text` with one to four faults: a flipped bit, another byte, a cut, a piece gone or there twice. Same seed, same
// damage.
inline std::string Mutate(std::string text, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](size_t n) { return n == 0 ? 0 : random() % n; };
  for (size_t fault = 0, faults = 1 + below(4); fault < faults && !text.empty(); ++fault) {
    const size_t at = below(text.size());
    const size_t length = std::min<size_t>(1 + below(16), text.size() - at);
    switch (below(6)) {
      case 0: text[at] = static_cast<char>(text[at] ^ (1 << below(8))); break;
      case 1: text[at] = static_cast<char>(below(256)); break;
      case 2: text[at] = "0123456789-\"{}[],:"[below(18)]; break;
      case 3: text.resize(at); break;
      case 4: text.erase(at, length); break;
      default: text.insert(at, text.substr(at, length));
    }
  }
  return text;
}

}  // namespace baton::testing
