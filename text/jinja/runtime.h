// SPDX-License-Identifier: Apache-2.0
// The interface of built-in filters, tests, methods and functions, and their look-up by name.
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

// The state of one render. Not thread-safe.
struct Runtime {
  explicit Runtime(const Limits& limits) : heap(limits) {}

  Heap heap;
  absl::Time now;
  bool raised_by_template = false;  // the current error comes from raise_exception
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;
};

// A filter or test with its input, a method with its receiver as `input`, or a function, which ignores `input`.
class BuiltinFn {
 public:
  using OfInput = absl::StatusOr<Value> (*)(Runtime& runtime, const Value& input);
  using OfArguments = absl::StatusOr<Value> (*)(Runtime& runtime, const Value& input, const Arguments& arguments);

  constexpr BuiltinFn() = default;                        // the result for an unknown name
  constexpr BuiltinFn(OfInput call) : of_input_(call) {}  // refuses arguments
  constexpr BuiltinFn(OfArguments call) : of_arguments_(call) {}

  bool is_known() const { return of_input_ != nullptr || of_arguments_ != nullptr; }
  absl::StatusOr<Value> operator()(Runtime& runtime, const Value& input, const Arguments& arguments) const;

 private:
  OfInput of_input_ = nullptr;
  OfArguments of_arguments_ = nullptr;
};

struct Function {
  std::string_view name;
  BuiltinFn call;
};

BuiltinFn FindFilter(std::string_view name);
BuiltinFn FindTest(std::string_view name);
BuiltinFn FindMethod(Kind receiver, std::string_view name);
const Function* FindFunction(std::string_view name);  // null for an unknown name

// Returns whether any kind of receiver has a method `name`, including forbidden methods.
bool IsMethodName(std::string_view name);
// Returns the first field of a str.format string that needs more than an argument's text ("x!r", ":>5", "x.y"), or "".
// The parser refuses such fields.
std::string_view UnsupportedFormatField(std::string_view format);
// Returns whether `name` is a method of Python that Jinja's sandbox forbids. Calling such a method is an error.
bool IsForbiddenMethodOf(Kind receiver, std::string_view name);
// Returns whether `name` is a method of Python that Baton lacks. The parser refuses calls of such a method. The test
// `x.name is defined` is true, as in Python.
bool IsUnsupportedMethodOf(Kind receiver, std::string_view name);
// Returns whether `name` is a function of Jinja that Baton lacks.
bool IsUnsupportedFunction(std::string_view name);

// Returns the arguments in the order of `names`, nullopt for absent arguments. INVALID_ARGUMENT when one of the first
// `required` arguments is absent, or when there are unknown or duplicate arguments.
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

// INVALID_ARGUMENT "<what> must be a str, not <type>" when `value` has another type.
absl::StatusOr<std::string_view> ExpectString(const Value& value, std::string_view what);
absl::StatusOr<int64_t> ExpectInt(const Value& value, std::string_view what);
// Like ExpectString and ExpectInt. Return `if_absent` for an absent value.
absl::StatusOr<std::string_view> StringOr(const std::optional<Value>& value, std::string_view if_absent,
                                          std::string_view what);
absl::StatusOr<int64_t> IntOr(const std::optional<Value>& value, int64_t if_absent, std::string_view what);

}  // namespace baton::jinja
