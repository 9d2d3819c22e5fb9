// SPDX-License-Identifier: Apache-2.0
// Implements the methods of Python's str.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "text/jinja/builtins.h"
#include "text/jinja/operators.h"
#include "text/jinja/text.h"
#include "text/utf8.h"

namespace baton::jinja {
namespace {

// Returns the receiver of a method and accounts for reading it once.
absl::StatusOr<std::string_view> Receiver(Runtime& runtime, const Value& text) {
  BATON_RETURN_IF_ERROR(runtime.heap.Step(text.AsString().size()));
  return text.AsString();
}

template <bool Left, bool Right>
absl::StatusOr<Value> StripMethod(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const std::string_view text, Receiver(runtime, input));
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"chars"}));
  std::optional<std::string_view> characters;
  if (bound[0] && !bound[0]->is(Kind::kNone)) {
    BATON_ASSIGN_OR_RETURN(characters, ExpectString(*bound[0], "the characters to strip"));
    BATON_RETURN_IF_ERROR(runtime.heap.Step(text.size() / 8 * characters->size()));
  }
  return Value::String(Strip(text, characters, {.left = Left, .right = Right}));
}

absl::StatusOr<Value> NewStrings(Runtime& runtime, const std::vector<std::string_view>& parts) {
  std::vector<Value> values;
  values.reserve(parts.size());
  for (const std::string_view part : parts) values.push_back(Value::String(part));
  return runtime.heap.NewList(std::move(values));
}

// Accounts for the memory of a list of `count` strings. Call before making the list.
absl::Status ReserveStrings(Runtime& runtime, size_t count) {
  return runtime.heap.Reserve(count * (sizeof(std::string_view) + sizeof(Value)));
}

int64_t CountOccurrences(std::string_view text, std::string_view what) {
  int64_t count = 0;
  for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + what.size())) ++count;
  return count;
}

template <bool FromRight>
absl::StatusOr<Value> SplitMethod(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const std::string_view text, Receiver(runtime, input));
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"sep", "maxsplit"}));
  BATON_ASSIGN_OR_RETURN(const int64_t max_splits, IntOr(bound[1], -1, "maxsplit"));
  if (!bound[0] || bound[0]->is(Kind::kNone)) {
    BATON_RETURN_IF_ERROR(ReserveStrings(runtime, CountSpaces(text) + 1));
    return NewStrings(runtime, SplitAtWhitespace(text, max_splits, FromRight));
  }
  BATON_ASSIGN_OR_RETURN(const std::string_view separator, ExpectString(*bound[0], "a separator"));
  if (separator.empty()) return absl::InvalidArgumentError("empty separator");
  BATON_RETURN_IF_ERROR(ReserveStrings(runtime, CountOccurrences(text, separator) + 1));
  return NewStrings(runtime, SplitAt(text, separator, max_splits, FromRight));
}

absl::StatusOr<Value> SplitLinesMethod(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const std::string_view text, Receiver(runtime, input));
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"keepends"}));
  BATON_RETURN_IF_ERROR(ReserveStrings(runtime, CountSpaces(text) + 1));
  return NewStrings(runtime, SplitLines(text, IsTrue(bound[0])));
}

template <bool AtStart>
absl::StatusOr<Value> StartsOrEndsWith(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"affix"}, 1));
  const std::string_view text = input.AsString();
  std::vector<Value> affixes = {*bound[0]};
  if (bound[0]->is(Kind::kList) && bound[0]->AsList().is_tuple) {
    BATON_ASSIGN_OR_RETURN(affixes, Items(runtime, *bound[0]));
  }
  for (const Value& affix : affixes) {
    BATON_ASSIGN_OR_RETURN(const std::string_view what, ExpectString(affix, "a prefix or suffix"));
    BATON_RETURN_IF_ERROR(runtime.heap.Step(what.size()));
    if (AtStart ? text.starts_with(what) : text.ends_with(what)) return Value::Bool(true);
  }
  return Value::Bool(false);
}

template <bool AtStart>
absl::StatusOr<Value> RemoveAffix(Runtime&, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"affix"}, 1));
  BATON_ASSIGN_OR_RETURN(const std::string_view affix, ExpectString(*bound[0], "a prefix or suffix"));
  std::string_view text = input.AsString();
  if (AtStart && text.starts_with(affix)) text.remove_prefix(affix.size());
  if (!AtStart && text.ends_with(affix)) text.remove_suffix(affix.size());
  return Value::String(text);
}

template <std::string (*Map)(std::string_view)>
absl::StatusOr<Value> MapMethod(Runtime& runtime, const Value& input) {
  BATON_ASSIGN_OR_RETURN(const std::string_view text, Receiver(runtime, input));
  return runtime.heap.NewString(Map(text));
}

absl::StatusOr<Value> ReplaceMethod(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"old", "new", "count"}, 2));
  BATON_ASSIGN_OR_RETURN(const std::string_view from, ExpectString(*bound[0], "what to replace"));
  BATON_ASSIGN_OR_RETURN(const std::string_view to, ExpectString(*bound[1], "the replacement"));
  BATON_ASSIGN_OR_RETURN(const int64_t count, IntOr(bound[2], -1, "count"));
  return Replace(runtime, input.AsString(), from, to, count);
}

absl::StatusOr<Value> JoinMethod(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"iterable"}, 1));
  BATON_ASSIGN_OR_RETURN(const std::vector<Value> items, Items(runtime, *bound[0]));
  std::string joined;
  for (size_t i = 0; i < items.size(); ++i) {
    BATON_ASSIGN_OR_RETURN(const std::string_view item, ExpectString(items[i], "an item to join"));
    BATON_RETURN_IF_ERROR(runtime.heap.Reserve(item.size() + input.AsString().size()));
    if (i > 0) joined += input.AsString();
    joined += item;
  }
  return runtime.heap.NewString(std::move(joined));
}

template <bool FromRight, bool MustExist>
absl::StatusOr<Value> FindInText(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const std::string_view text, Receiver(runtime, input));
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"sub"}, 1));
  BATON_ASSIGN_OR_RETURN(const std::string_view what, ExpectString(*bound[0], "what to find"));
  const size_t at = FromRight ? text.rfind(what) : text.find(what);
  if (at != std::string_view::npos) return Value::Int(static_cast<int64_t>(CountCodePoints(text.substr(0, at))));
  if (MustExist) return absl::InvalidArgumentError("substring not found");
  return Value::Int(-1);
}

absl::StatusOr<Value> CountMethod(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const std::string_view text, Receiver(runtime, input));
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"sub"}, 1));
  BATON_ASSIGN_OR_RETURN(const std::string_view what, ExpectString(*bound[0], "what to count"));
  if (what.empty()) return Value::Int(static_cast<int64_t>(CountCodePoints(text)) + 1);
  return Value::Int(CountOccurrences(text, what));
}

absl::StatusOr<Value> ZeroFill(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const std::string_view text, Receiver(runtime, input));
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"width"}, 1));
  BATON_ASSIGN_OR_RETURN(const int64_t width, ExpectInt(*bound[0], "a width"));
  const auto length = static_cast<int64_t>(CountCodePoints(text));
  if (width <= length) return input;
  BATON_RETURN_IF_ERROR(runtime.heap.Reserve(width - length));
  const size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  return runtime.heap.NewString(Concat(text.substr(0, sign), std::string(width - length, '0'), text.substr(sign)));
}

// A part of a format string: text, then optionally a field, without braces.
struct FormatPiece {
  std::string_view text;
  std::optional<std::string_view> field;
};

// Removes the first piece from `format`, which must not be empty.
absl::StatusOr<FormatPiece> TakeFormatPiece(std::string_view& format) {
  FormatPiece piece;
  size_t taken = std::min(format.find_first_of("{}"), format.size());
  piece.text = format.substr(0, taken);
  if (format.substr(taken).starts_with("{{") || format.substr(taken).starts_with("}}")) {
    piece.text = format.substr(0, taken + 1);
    taken += 2;
  } else if (taken < format.size()) {
    const size_t end = format.find('}', taken);
    if (format[taken] == '}' || end == std::string_view::npos) {
      return absl::InvalidArgumentError(Concat("Single '", format.substr(taken, 1), "' encountered in format string"));
    }
    piece.field = format.substr(taken + 1, end - taken - 1);
    taken = end + 1;
  }
  format.remove_prefix(taken);
  return piece;
}

// Conversions (!r), specifications (:>5), attributes (.x) and items ([0]).
bool IsUnsupportedField(std::string_view field) { return field.find_first_of("!:.[{") != std::string_view::npos; }

// Returns the argument for the field {}, {0} or {name}. `next` is the index for the next {}.
absl::StatusOr<Value> FormatArgument(std::string_view field, const Arguments& arguments, size_t& next) {
  if (field.empty() || field.find_first_not_of("0123456789") == std::string_view::npos) {
    size_t index = next;
    if (field.empty()) {
      ++next;
    } else if (!absl::SimpleAtoi(ToAbsl(field), &index)) {
      index = arguments.positional.size();
    }
    if (index < arguments.positional.size()) return arguments.positional[index];
    return absl::InvalidArgumentError("Replacement index out of range for positional args tuple");
  }
  for (const auto& [name, value] : arguments.named) {
    if (name == field) return value;
  }
  if (IsUnsupportedField(field)) return absl::UnimplementedError(Concat("the format '{", field, "}' is not supported"));
  return absl::InvalidArgumentError(Concat("format has no argument '", field, "'"));
}

absl::StatusOr<Value> FormatMethod(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(std::string_view format, Receiver(runtime, input));
  std::string result;
  size_t next = 0;
  while (!format.empty()) {
    BATON_ASSIGN_OR_RETURN(const FormatPiece piece, TakeFormatPiece(format));
    result += piece.text;
    if (!piece.field) continue;
    BATON_ASSIGN_OR_RETURN(const Value argument, FormatArgument(*piece.field, arguments, next));
    BATON_ASSIGN_OR_RETURN(const Value shown, ToText(runtime, argument));
    BATON_RETURN_IF_ERROR(runtime.heap.Reserve(shown.AsString().size()));
    result += shown.AsString();
  }
  return runtime.heap.NewString(std::move(result));
}

bool IsAlphanumeric(char32_t c) { return IsAlpha(c) || IsNumeric(c); }

// str.isalpha() etc.: true when `input` is not empty and `Is` holds for every code point.
template <bool (*Is)(char32_t)>
absl::StatusOr<Value> AllAre(Runtime& runtime, const Value& input) {
  BATON_ASSIGN_OR_RETURN(std::string_view text, Receiver(runtime, input));
  if (text.empty()) return Value::Bool(false);
  while (!text.empty()) {
    const Utf8Unit unit = ReadUtf8(text);
    if (!Is(unit.code_point)) return Value::Bool(false);
    text.remove_prefix(unit.length);
  }
  return Value::Bool(true);
}

template <const char* Test>
absl::StatusOr<Value> AsTest(Runtime& runtime, const Value& input, const Arguments& arguments) {
  return FindTest(Test)(runtime, input, arguments);
}

constexpr char kUpper[] = "upper";
constexpr char kLower[] = "lower";

constexpr Function kStringMethods[] = {
    {"strip", StripMethod<true, true>},
    {"lstrip", StripMethod<true, false>},
    {"rstrip", StripMethod<false, true>},
    {"split", SplitMethod<false>},
    {"rsplit", SplitMethod<true>},
    {"splitlines", SplitLinesMethod},
    {"startswith", StartsOrEndsWith<true>},
    {"endswith", StartsOrEndsWith<false>},
    {"removeprefix", RemoveAffix<true>},
    {"removesuffix", RemoveAffix<false>},
    {"upper", MapMethod<ToUpper>},
    {"lower", MapMethod<ToLower>},
    {"title", MapMethod<TitleMethod>},
    {"capitalize", MapMethod<Capitalize>},
    {"replace", ReplaceMethod},
    {"join", JoinMethod},
    {"find", FindInText<false, false>},
    {"rfind", FindInText<true, false>},
    {"index", FindInText<false, true>},
    {"rindex", FindInText<true, true>},
    {"count", CountMethod},
    {"zfill", ZeroFill},
    {"format", FormatMethod},
    {"isalpha", AllAre<IsAlpha>},
    {"isdigit", AllAre<IsDigit>},
    {"isalnum", AllAre<IsAlphanumeric>},
    {"isspace", AllAre<IsSpace>},
    {"isupper", AsTest<kUpper>},
    {"islower", AsTest<kLower>},
};

}  // namespace

std::string_view UnsupportedFormatField(std::string_view format) {
  while (!format.empty()) {
    const absl::StatusOr<FormatPiece> piece = TakeFormatPiece(format);
    if (!piece.ok()) break;  // as in Python, a malformed format is a run-time error
    if (piece->field && IsUnsupportedField(*piece->field)) return *piece->field;
  }
  return {};
}

BuiltinFn FindStringMethod(std::string_view name) { return FindBuiltin(kStringMethods, name); }

absl::StatusOr<Value> Replace(Runtime& runtime, std::string_view text, std::string_view from, std::string_view to,
                              int64_t count) {
  BATON_RETURN_IF_ERROR(runtime.heap.Step(text.size()));
  std::string result;
  size_t done = 0;
  for (size_t at = 0; count != 0; --count) {
    at = text.find(from, at);
    if (at == std::string_view::npos) break;
    BATON_RETURN_IF_ERROR(runtime.heap.Reserve(to.size() + 1));
    result += text.substr(done, at - done);
    result += to;
    done = at + from.size();
    at = done;
    // Python finds an empty string before every code point and at the end.
    if (from.empty()) {
      if (at == text.size()) break;
      at += ReadUtf8(text.substr(at)).length;
    }
  }
  result += text.substr(done);
  return runtime.heap.NewString(std::move(result));
}

}  // namespace baton::jinja
