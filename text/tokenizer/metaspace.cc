// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/metaspace.h"

#include "common/status_macros.h"
#include "common/strings.h"
#include "text/tokenizer/json_node.h"

namespace baton {

absl::StatusOr<Metaspace> ReadMetaspace(const JsonNode& json) {
  using Prepend = Metaspace::Prepend;
  BATON_ASSIGN_OR_RETURN(const std::string_view replacement, json.GetString("replacement"));
  if (replacement.empty())
    return absl::InvalidArgumentError(Concat(json.path(), ".replacement: expected a text, got \"\""));
  const auto scheme = json.Find("prepend_scheme");
  if (!scheme) {
    // Older files have add_prefix_space instead of prepend_scheme.
    BATON_ASSIGN_OR_RETURN(const bool add_prefix_space, json.GetBool("add_prefix_space", true));
    return Metaspace{replacement, add_prefix_space ? Prepend::kAlways : Prepend::kNever};
  }
  BATON_ASSIGN_OR_RETURN(const std::string_view name, scheme->String());
  if (name == "always") return Metaspace{replacement, Prepend::kAlways};
  if (name == "first") return Metaspace{replacement, Prepend::kFirst};
  if (name == "never") return Metaspace{replacement, Prepend::kNever};
  return scheme->Unsupported(Concat("prepend_scheme '", name, "'"));
}

}  // namespace baton
