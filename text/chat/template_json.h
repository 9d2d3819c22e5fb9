// SPDX-License-Identifier: Apache-2.0
// Parses JSON to template values. Objects keep the order of their keys, because templates iterate over them. Pure
// functions.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "text/template_value.h"

namespace baton {

// Limits: 64 levels of nesting, 200,000 values, 10,000 keys per object, unique keys, integers of 64 bits (signed).
// INVALID_ARGUMENT names `origin` and the violated limit or the byte of a syntax error. Never throws.
absl::StatusOr<TemplateValue> TemplateValueFromJson(std::string_view json, std::string_view origin);

// Like TemplateValueFromJson. INVALID_ARGUMENT when the value is not an object.
absl::StatusOr<TemplateValue::Dict> TemplateDictFromJson(std::string_view json, std::string_view origin);

}  // namespace baton
