// SPDX-License-Identifier: Apache-2.0
// Implements filters on single values, and FindFilter.
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "text/jinja/builtins.h"
#include "text/jinja/operators.h"
#include "text/jinja/text.h"

namespace baton::jinja {
namespace {

constexpr int64_t kMaxIndent = 64;

absl::StatusOr<Value> Default(Runtime&, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"default_value", "boolean"}));
  const bool also_if_false = IsTrue(bound[1]);
  const bool replaced = input.is(Kind::kUndefined) || (also_if_false && !IsTrue(input));
  return replaced ? bound[0].value_or(Value::String("")) : input;
}

absl::StatusOr<Value> Abs(Runtime&, const Value& input) {
  if (input.is(Kind::kFloat)) return Value::Float(std::fabs(input.AsFloat()));
  if (!input.IsInteger() || input.AsInt() < 0) return Negate(input);
  return Value::Int(input.AsInt());
}

// Python's int(text, base) without base prefixes such as 0x. Returns nullopt where Python raises ValueError.
std::optional<int64_t> ParseInt(std::string_view text, int64_t base) {
  std::string digits = absl::StrReplaceAll(ToAbsl(Strip(text, std::nullopt)), {{"_", ""}});
  if (digits.starts_with('+')) digits.erase(0, 1);
  int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto result = std::from_chars(digits.data(), end, value, static_cast<int>(base));
  return result.ec == std::errc() && result.ptr == end ? std::optional(value) : std::nullopt;
}

std::optional<double> ParseFloat(std::string_view text) {
  // SimpleAtod accepts hexadecimal numbers, Python's float() does not.
  if (text.find_first_of("xX") != std::string_view::npos) return std::nullopt;
  double value = 0;
  return absl::SimpleAtod(ToAbsl(Strip(text, std::nullopt)), &value) ? std::optional(value) : std::nullopt;
}

std::optional<int64_t> Truncate(double value) {
  if (!(value > -9.2e18 && value < 9.2e18)) return std::nullopt;
  return static_cast<int64_t>(value);
}

absl::StatusOr<Value> IntFilter(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"default", "base"}));
  BATON_ASSIGN_OR_RETURN(const int64_t base, IntOr(bound[1], 10, "a base"));
  if (base < 2 || base > 36) return absl::InvalidArgumentError("a base must be from 2 to 36");
  const Value otherwise = bound[0].value_or(Value::Int(0));
  std::optional<int64_t> value;
  if (input.IsInteger()) {
    value = input.AsInt();
  } else if (input.is(Kind::kFloat)) {
    value = Truncate(input.AsFloat());
  } else if (input.is(Kind::kString)) {
    BATON_RETURN_IF_ERROR(runtime.heap.Step(input.AsString().size()));
    value = ParseInt(input.AsString(), base);
    if (!value) {
      if (const std::optional<double> number = ParseFloat(input.AsString())) value = Truncate(*number);
    }
  } else if (input.is(Kind::kUndefined)) {
    return UndefinedError(input);
  }
  return value ? Value::Int(*value) : otherwise;
}

absl::StatusOr<Value> FloatFilter(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"default"}));
  if (input.IsNumber()) return Value::Float(input.AsFloat());
  if (input.is(Kind::kUndefined)) return UndefinedError(input);
  if (input.is(Kind::kString)) {
    BATON_RETURN_IF_ERROR(runtime.heap.Step(input.AsString().size()));
    if (const std::optional<double> value = ParseFloat(input.AsString())) return Value::Float(*value);
  }
  return bound[0].value_or(Value::Float(0));
}

absl::StatusOr<Value> Round(Runtime&, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"precision", "method"}));
  BATON_ASSIGN_OR_RETURN(const int64_t precision, IntOr(bound[0], 0, "a precision"));
  BATON_ASSIGN_OR_RETURN(const std::string_view method, StringOr(bound[1], "common", "a rounding method"));
  if (!input.IsNumber())
    return absl::InvalidArgumentError(Concat("round needs a number, not ", TypeName(input.kind())));
  if (precision < 0 || precision > 15) return absl::InvalidArgumentError("a precision must be from 0 to 15");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = input.AsFloat() * scale;
  if (method == "ceil") return Value::Float(std::ceil(scaled) / scale);
  if (method == "floor") return Value::Float(std::floor(scaled) / scale);
  if (method != "common") return absl::InvalidArgumentError("a rounding method must be common, ceil or floor");
  if (input.IsInteger()) return Value::Int(input.AsInt());
  // Python's round() rounds the exact decimal value, ties to even; to_chars does the same.
  char buffer[400];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), input.AsFloat(), std::chars_format::fixed,
                                 static_cast<int>(precision));
  return Value::Float(ParseFloat(std::string_view(buffer, end.ptr)).value_or(input.AsFloat()));
}

absl::StatusOr<Value> AttributeFilter(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"name"}, 1));
  BATON_ASSIGN_OR_RETURN(const std::string_view name, ExpectString(*bound[0], "an attribute's name"));
  if (input.is(Kind::kUndefined)) return UndefinedError(input);
  // Unlike input.name, the filter `attr` does not find dict entries.
  if (input.is(Kind::kDict) && !FindMethod(Kind::kDict, name).is_known()) return Value::Undefined(name, Kind::kDict);
  return GetAttribute(runtime, input, name);
}

absl::StatusOr<Value> ToJson(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}));
  JsonStyle style;
  style.ensure_ascii = IsTrue(bound[0]);
  style.sort_keys = IsTrue(bound[3]);
  if (bound[1] && !bound[1]->is(Kind::kNone)) {
    style.pretty = true;
    style.item_separator = ",";
    BATON_ASSIGN_OR_RETURN(style.indent, ToIndent(*bound[1], kMaxIndent, "indent"));
  }
  if (bound[2] && !bound[2]->is(Kind::kNone)) {
    BATON_ASSIGN_OR_RETURN(const std::vector<Value> separators, Items(runtime, *bound[2]));
    if (separators.size() != 2) {
      return absl::InvalidArgumentError("separators must be (item_separator, key_separator)");
    }
    BATON_ASSIGN_OR_RETURN(style.item_separator, ExpectString(separators[0], "a separator"));
    BATON_ASSIGN_OR_RETURN(style.key_separator, ExpectString(separators[1], "a separator"));
  }
  std::string json;
  BATON_RETURN_IF_ERROR(AppendJson(runtime, input, style, json));
  return runtime.heap.NewString(std::move(json));
}

constexpr Function kFilters[] = {
    {"default", Default}, {"d", Default},         {"string", ToText}, {"abs", Abs},
    {"int", IntFilter},   {"float", FloatFilter}, {"round", Round},   {"attr", AttributeFilter},
    {"tojson", ToJson},   {"safe", ToText},  // chat templates run without autoescape
};

}  // namespace

BuiltinFn FindFilter(std::string_view name) {
  if (const BuiltinFn filter = FindBuiltin(kFilters, name); filter.is_known()) return filter;
  if (const BuiltinFn filter = FindTextFilter(name); filter.is_known()) return filter;
  return FindSequenceFilter(name);
}

}  // namespace baton::jinja
