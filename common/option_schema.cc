#include "common/option_schema.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_join.h"
#include "common/strings.h"

namespace baton::option_schema {
namespace {

// Insertions, deletions and substitutions that turn one into the other.
size_t EditDistance(std::string_view a, std::string_view b) {
  // row[j]: the distance between the part of `a` read so far and b's first j letters.
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j + 1] + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

absl::Status Set(const Option& option, const std::vector<std::string>& texts, std::string_view where) {
  absl::Status status = option.set(texts);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      Concat(where, ": \"", absl::StrJoin(texts, ","), "\" is not valid, ", status.message()));
}

std::string Suggestion(const Schema& schema, std::string_view name, std::string_view lead) {
  const auto closest = std::min_element(schema.begin(), schema.end(), [&](const Option& a, const Option& b) {
    return EditDistance(a.name, name) < EditDistance(b.name, name);
  });
  if (closest == schema.end() || EditDistance(closest->name, name) > 2) return "";
  return Concat("; did you mean ", lead, closest->name, "?");
}

}  // namespace baton::option_schema
