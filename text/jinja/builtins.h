// SPDX-License-Identifier: Apache-2.0
// Look-up tables of built-in filters and methods, by name. Each Find function is defined in the file of its functions
// and returns null for an unknown name.
#pragma once

#include <cstddef>
#include <string_view>

#include "text/jinja/runtime.h"

namespace baton::jinja {

struct Builtin {
  std::string_view name;
  BuiltinFn call;
};

template <size_t N>
BuiltinFn FindBuiltin(const Builtin (&table)[N], std::string_view name) {
  for (const Builtin& builtin : table) {
    if (builtin.name == name) return builtin.call;
  }
  return nullptr;
}

BuiltinFn FindTextFilter(std::string_view name);
BuiltinFn FindSequenceFilter(std::string_view name);
BuiltinFn FindStringMethod(std::string_view name);

// str.replace(). A negative `count` means no limit.
absl::StatusOr<Value> Replace(Runtime& runtime, std::string_view text, std::string_view from, std::string_view to,
                              int64_t count);

}  // namespace baton::jinja
