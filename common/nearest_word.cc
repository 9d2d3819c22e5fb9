// SPDX-License-Identifier: Apache-2.0
#include "common/nearest_word.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "common/strings.h"

namespace baton {
namespace {

constexpr size_t kNear = 2;

// Returns how many insertions, deletions, replacements and swaps of neighbours turn `a` into `b` (optimal string
// alignment).
size_t EditDistance(std::string_view a, std::string_view b) {
  // current[j]: the distance between the part of `a` read so far and the first j letters of `b`. The other rows are
  // those of one and two letters less of `a`.
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> previous(b.size() + 1);
  std::vector<size_t> current(b.size() + 1);
  std::iota(current.begin(), current.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, previous);
    std::swap(previous, current);
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({replaced, previous[j] + 1, current[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
    }
  }
  return current.back();
}

}  // namespace

std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates, std::string_view lead) {
  const std::string* nearest = nullptr;
  size_t distance = std::min(kNear + 1, word.size());
  for (const std::string& candidate : candidates) {
    const size_t own = EditDistance(word, candidate);
    if (own >= distance) continue;
    nearest = &candidate;
    distance = own;
  }
  return nearest == nullptr ? "" : Concat("; did you mean ", lead, *nearest, "?");
}

}  // namespace baton
