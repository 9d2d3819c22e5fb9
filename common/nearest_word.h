// SPDX-License-Identifier: Apache-2.0
// Finds the word that a user probably meant, for errors about names that do not exist.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace baton {

// Returns "; did you mean <lead><candidate>?" for the candidate nearest to `word`, or nothing when no candidate is
// near. Near means at most two letters inserted, deleted, replaced or swapped with their neighbour, and fewer letters
// than `word` has. Among equals the first candidate wins.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates, std::string_view lead);

}  // namespace baton
