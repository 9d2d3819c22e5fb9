// JSON as a chat template sees it: objects keep the order of their keys, which filters show.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "text/template_value.h"

namespace baton {

// INVALID_ARGUMENT, with `origin`, for what is not JSON, nests deeper than 64 levels, has more than 200,000 values or
// an object of more than 10,000, names a key twice in one object or has a whole number beyond 64 bits. Never throws.
absl::StatusOr<TemplateValue> TemplateValueFromJson(std::string_view json, std::string_view origin);

// Likewise, and expects an object.
absl::StatusOr<TemplateValue::Dict> TemplateDictFromJson(std::string_view json, std::string_view origin);

}  // namespace baton
