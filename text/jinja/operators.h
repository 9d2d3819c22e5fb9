// SPDX-License-Identifier: Apache-2.0
// Python's operators and conversions on template values. Values of different types follow Python's rules; integers have
// 64 bits and overflow is an error.
//
// An undefined value behaves like Jinja's default Undefined: false, an empty string or an empty sequence. Any other use
// is INVALID_ARGUMENT.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace baton::jinja {

bool IsTrue(const Value& value);
inline bool IsTrue(const std::optional<Value>& value) { return value && IsTrue(*value); }

absl::StatusOr<bool> AreEqual(Runtime& runtime, const Value& left, const Value& right);
// left < right. INVALID_ARGUMENT when the types have no order.
absl::StatusOr<bool> IsLess(Runtime& runtime, const Value& left, const Value& right);
absl::StatusOr<bool> CompareValues(Runtime& runtime, CompareOp op, const Value& left, const Value& right);
absl::StatusOr<bool> IsIn(Runtime& runtime, const Value& item, const Value& container);

// `op` must not be kAnd or kOr: the evaluator handles them, because they may skip the right operand.
absl::StatusOr<Value> Arithmetic(Runtime& runtime, BinaryOp op, const Value& left, const Value& right);
absl::StatusOr<Value> Negate(const Value& value);

// Python's str(value), the text that {{ value }} outputs.
absl::StatusOr<Value> ToText(Runtime& runtime, const Value& value);
absl::Status AppendText(Runtime& runtime, const Value& value, std::string& out);
std::string FormatFloat(double value);  // Python's repr(float)

// Returns the items that a for loop visits: the items of a list, the keys of a dict, the code points of a string.
absl::StatusOr<std::vector<Value>> Items(Runtime& runtime, const Value& value);
absl::StatusOr<int64_t> Length(Runtime& runtime, const Value& value);

// object.name. A method takes precedence over a dict entry of the same name.
absl::StatusOr<Value> GetAttribute(Runtime& runtime, const Value& object, std::string_view name);
// object[key]. A dict entry takes precedence over a method of the same name.
absl::StatusOr<Value> GetItem(Runtime& runtime, const Value& object, const Value& key);
// object[start:stop:step]. Pass None for an absent bound.
absl::StatusOr<Value> GetSlice(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
                               const Value& step);

// Jinja's message for the use of an undefined value: "'x' is undefined", "'dict object' has no attribute 'x'".
absl::Status UndefinedError(const Value& undefined);

// The options of Python's json.dumps.
struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool pretty = false;
  std::string indent;  // per level; used when `pretty`
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
// Appends the output of Python's json.dumps(value).
absl::Status AppendJson(Runtime& runtime, const Value& value, const JsonStyle& style, std::string& out);

}  // namespace baton::jinja
