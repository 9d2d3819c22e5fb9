// Python's operators on template values.
//
// Undefined values behave as Jinja's default ones: empty text, an empty sequence and false, and an error in anything
// else.
#pragma once

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

absl::StatusOr<bool> AreEqual(Runtime& runtime, const Value& left, const Value& right);
// left < right; INVALID_ARGUMENT when their types have no order.
absl::StatusOr<bool> IsLess(Runtime& runtime, const Value& left, const Value& right);
absl::StatusOr<bool> CompareValues(Runtime& runtime, CompareOp op, const Value& left, const Value& right);
// `item` in `container`.
absl::StatusOr<bool> IsIn(Runtime& runtime, const Value& item, const Value& container);

// Not kAnd and kOr, which do not always evaluate both.
absl::StatusOr<Value> Arithmetic(Runtime& runtime, BinaryOp op, const Value& left, const Value& right);
absl::StatusOr<Value> Negate(const Value& value);

// str(value), as {{ value }} shows it.
absl::StatusOr<Value> ToText(Runtime& runtime, const Value& value);
absl::Status AppendText(Runtime& runtime, const Value& value, std::string& out);
std::string FormatFloat(double value);  // repr(float)

// The items that a for loop goes through: of a list, the keys of a dict, the code points of a string.
absl::StatusOr<std::vector<Value>> Items(Runtime& runtime, const Value& value);
absl::StatusOr<int64_t> Length(Runtime& runtime, const Value& value);

// object.name: methods come before the entries of a dict.
absl::StatusOr<Value> GetAttribute(Runtime& runtime, const Value& object, std::string_view name);
// object[key]: entries come before methods.
absl::StatusOr<Value> GetItem(Runtime& runtime, const Value& object, const Value& key);
// object[start:stop:step], with None or undefined for an absent bound.
absl::StatusOr<Value> GetSlice(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
                               const Value& step);

// "'x' is undefined" and the like.
absl::Status UndefinedError(const Value& undefined);

// Appends `value` as JSON, as Python's json.dumps writes it.
struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool pretty = false;
  std::string indent;  // of each level, when pretty
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
absl::Status AppendJson(Runtime& runtime, const Value& value, const JsonStyle& style, std::string& out);

}  // namespace baton::jinja
