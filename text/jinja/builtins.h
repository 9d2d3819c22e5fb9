// SPDX-License-Identifier: Apache-2.0
// Look-up tables of built-in filters and methods, by name. Each Find function is defined in the file of its functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/jinja/runtime.h"

namespace baton::jinja {

template <size_t N>
BuiltinFn FindBuiltin(const Function (&table)[N], std::string_view name) {
  for (const Function& function : table) {
    if (function.name == name) return function.call;
  }
  return {};
}

BuiltinFn FindTextFilter(std::string_view name);
BuiltinFn FindSequenceFilter(std::string_view name);
BuiltinFn FindStringMethod(std::string_view name);

// Returns an indent: a string, or at most `max` spaces.
absl::StatusOr<std::string> ToIndent(const Value& value, int64_t max, std::string_view what);

// str.replace(). A negative `count` means no limit.
absl::StatusOr<Value> Replace(Runtime& runtime, std::string_view text, std::string_view from, std::string_view to,
                              int64_t count);

}  // namespace baton::jinja
