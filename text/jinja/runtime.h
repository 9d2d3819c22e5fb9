// What the built-in filters, tests, methods and functions work with, and how they are found by name.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/strings.h"
#include "text/jinja/heap.h"
#include "text/jinja/value.h"

namespace baton::jinja {

struct Runtime {
  explicit Runtime(const Limits& limits) : heap(limits) {}

  Heap heap;
  absl::Time now;
  bool raised_by_template = false;  // the error on its way out is the template's own
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;
};

// A filter or test applied to `input`, a method called on it, or a function (which ignores it).
using BuiltinFn = absl::StatusOr<Value> (*)(Runtime& runtime, const Value& input, const Arguments& arguments);

struct Function {
  std::string_view name;
  BuiltinFn call;
};

// Null when there is none of that name.
BuiltinFn FindFilter(std::string_view name);
BuiltinFn FindTest(std::string_view name);
BuiltinFn FindMethod(Kind receiver, std::string_view name);
const Function* FindFunction(std::string_view name);

// Of any kind of receiver.
bool IsMethodName(std::string_view name);
// Of what str.format is called on: the first field that asks for more than an argument's text ("x!r", ":>5", "x.y"), so
// that a template with it is refused when it is parsed. Empty when there is none.
std::string_view MissingFormatField(std::string_view format);
// Python's methods that the sandbox forbids: calling one is an error.
bool IsForbiddenMethodOf(Kind receiver, std::string_view name);
// Python's methods that we lack: a template that calls one is refused when it is parsed, and an attribute of that name
// is no undefined value.
bool IsMissingMethodOf(Kind receiver, std::string_view name);
// Jinja's own functions that we lack.
bool IsMissingFunction(std::string_view name);

// A call's arguments, in the order of `names`; nullopt where one is not given. INVALID_ARGUMENT when the first
// `required` are not all there, or when there are others.
template <size_t N>
absl::StatusOr<std::array<std::optional<Value>, N>> Bind(const Arguments& arguments, const std::string_view (&names)[N],
                                                         size_t required = 0) {
  std::array<std::optional<Value>, N> bound;
  if (arguments.positional.size() > N) {
    return absl::InvalidArgumentError(Concat("expected at most ", N, " arguments, got ", arguments.positional.size()));
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) bound[i] = arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    size_t i = 0;
    while (i < N && names[i] != name) ++i;
    if (i == N) return absl::InvalidArgumentError(Concat("unexpected argument '", name, "'"));
    if (bound[i]) return absl::InvalidArgumentError(Concat("argument '", name, "' given twice"));
    bound[i] = value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!bound[i]) return absl::InvalidArgumentError(Concat("missing argument '", names[i], "'"));
  }
  return bound;
}

// For what takes none.
absl::Status ExpectNoArguments(const Arguments& arguments);

// INVALID_ARGUMENT, naming `what` it is for, unless `value` is of the type.
absl::StatusOr<std::string_view> ExpectString(const Value& value, std::string_view what);
absl::StatusOr<int64_t> ExpectInt(const Value& value, std::string_view what);

}  // namespace baton::jinja
