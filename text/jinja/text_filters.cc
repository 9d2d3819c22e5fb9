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
absl::StatusOr<Value> MapText(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_RETURN_IF_ERROR(ExpectNoArguments(arguments));
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
  int64_t count = -1;
  if (bound[2] && !bound[2]->is(Kind::kNone)) {
    BATON_ASSIGN_OR_RETURN(count, ExpectInt(*bound[2], "count"));
  }
  return Replace(runtime, text.AsString(), from.AsString(), to.AsString(), count);
}

// indent(width=4, first=false, blank=false): indents all lines, but the first line only with `first`, and empty lines
// only with `blank`.
absl::StatusOr<Value> Indent(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"width", "first", "blank"}));
  BATON_ASSIGN_OR_RETURN(const Value text, ToText(runtime, input));
  std::string indent(4, ' ');
  if (bound[0] && bound[0]->is(Kind::kString)) {
    indent = bound[0]->AsString();
  } else if (bound[0]) {
    BATON_ASSIGN_OR_RETURN(const int64_t width, ExpectInt(*bound[0], "a width"));
    if (width > kMaxIndent) return absl::InvalidArgumentError(Concat("a width must be at most ", kMaxIndent));
    indent = std::string(width < 0 ? 0 : width, ' ');
  }
  const bool indents_first = bound[1] && IsTrue(*bound[1]);
  const bool indents_blank = bound[2] && IsTrue(*bound[2]);
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

constexpr Builtin kTextFilters[] = {
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

BuiltinFn FindTextFilter(std::string_view name) { return FindBuiltin(kTextFilters, name); }

}  // namespace baton::jinja
