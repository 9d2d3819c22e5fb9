// SPDX-License-Identifier: Apache-2.0
// Implements filters on text.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "text/jinja/builtins.h"
#include "text/jinja/operators.h"
#include "text/jinja/text.h"

namespace baton::jinja {
namespace {

constexpr int64_t kMaxIndent = 1000;

template <std::string (*Map)(std::string_view)>
absl::StatusOr<Value> MapText(Runtime& runtime, const Value& input) {
  BATON_ASSIGN_OR_RETURN(const Value text, ToText(runtime, input));
  BATON_RETURN_IF_ERROR(runtime.heap.Step(text.AsString().size()));
  return runtime.heap.NewString(Map(text.AsString()));
}

std::string EscapeHtml(std::string_view text) {
  return absl::StrReplaceAll(ToAbsl(text),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&#34;"}, {"'", "&#39;"}});
}

absl::StatusOr<Value> Trim(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"chars"}));
  BATON_ASSIGN_OR_RETURN(const Value text, ToText(runtime, input));
  return FindMethod(Kind::kString, "strip")(runtime, text,
                                            {.positional = {bound[0].value_or(Value::None())}, .named = {}});
}

absl::StatusOr<Value> ReplaceFilter(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"old", "new", "count"}, 2));
  BATON_ASSIGN_OR_RETURN(const Value text, ToText(runtime, input));
  BATON_ASSIGN_OR_RETURN(const Value from, ToText(runtime, *bound[0]));
  BATON_ASSIGN_OR_RETURN(const Value to, ToText(runtime, *bound[1]));
  const bool is_limited = bound[2] && !bound[2]->is(Kind::kNone);
  BATON_ASSIGN_OR_RETURN(const int64_t count, IntOr(is_limited ? bound[2] : std::nullopt, -1, "count"));
  return Replace(runtime, text.AsString(), from.AsString(), to.AsString(), count);
}

// indent(width=4, first=false, blank=false): indents all lines, but the first line only with `first`, and empty lines
// only with `blank`.
absl::StatusOr<Value> Indent(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"width", "first", "blank"}));
  BATON_ASSIGN_OR_RETURN(const Value text, ToText(runtime, input));
  BATON_ASSIGN_OR_RETURN(const std::string indent, ToIndent(bound[0].value_or(Value::Int(4)), kMaxIndent, "a width"));
  const bool indents_first = IsTrue(bound[1]);
  const bool indents_blank = IsTrue(bound[2]);
  BATON_RETURN_IF_ERROR(runtime.heap.Reserve(text.AsString().size() + CountSpaces(text.AsString()) * sizeof(Value)));
  // Jinja appends a line feed first, so a text that ends with a line feed has an empty last line.
  std::vector<std::string_view> lines = SplitLines(text.AsString(), /*keep_ends=*/false);
  if (text.AsString().empty() || SplitLines(text.AsString(), true).back().size() != lines.back().size()) {
    lines.emplace_back();
  }
  std::string result;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) result += "\n";
    const bool indents = i == 0 ? indents_first : indents_blank || !lines[i].empty();
    BATON_RETURN_IF_ERROR(runtime.heap.Reserve(indent.size()));
    if (indents) result += indent;
    result += lines[i];
  }
  return runtime.heap.NewString(std::move(result));
}

constexpr Function kTextFilters[] = {
    {"upper", MapText<ToUpper>},
    {"lower", MapText<ToLower>},
    {"capitalize", MapText<Capitalize>},
    {"title", MapText<TitleFilter>},
    {"escape", MapText<EscapeHtml>},
    {"e", MapText<EscapeHtml>},
    {"trim", Trim},
    {"replace", ReplaceFilter},
    {"indent", Indent},
};

}  // namespace

absl::StatusOr<std::string> ToIndent(const Value& value, int64_t max, std::string_view what) {
  if (value.is(Kind::kString)) return std::string(value.AsString());
  BATON_ASSIGN_OR_RETURN(const int64_t width, ExpectInt(value, what));
  if (width > max) return absl::InvalidArgumentError(Concat(what, " must be at most ", max));
  return std::string(width < 0 ? 0 : width, ' ');
}

BuiltinFn FindTextFilter(std::string_view name) { return FindBuiltin(kTextFilters, name); }

}  // namespace baton::jinja
