// SPDX-License-Identifier: Apache-2.0
// Implements the methods of Python's types; string_methods.cc has the methods of str. Calling a method that changes a
// list or dict is an error, as in the ImmutableSandboxedEnvironment that Hugging Face uses.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "text/jinja/builtins.h"
#include "text/jinja/operators.h"

namespace baton::jinja {
namespace {

absl::StatusOr<Value> DictItems(Runtime& runtime, const Value& dict) {
  std::vector<Value> items;
  for (const auto& [key, value] : dict.AsDict().entries) {
    BATON_ASSIGN_OR_RETURN(const Value pair, runtime.heap.NewTuple({key, value}));
    items.push_back(pair);
  }
  return runtime.heap.NewList(std::move(items));
}

absl::StatusOr<Value> DictKeys(Runtime& runtime, const Value& dict) {
  BATON_ASSIGN_OR_RETURN(std::vector<Value> keys, Items(runtime, dict));
  return runtime.heap.NewList(std::move(keys));
}

absl::StatusOr<Value> DictValues(Runtime& runtime, const Value& dict) {
  BATON_RETURN_IF_ERROR(runtime.heap.Step(dict.AsDict().entries.size() * sizeof(Value)));
  std::vector<Value> values;
  for (const auto& [key, value] : dict.AsDict().entries) values.push_back(value);
  return runtime.heap.NewList(std::move(values));
}

absl::StatusOr<Value> DictGet(Runtime& runtime, const Value& dict, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"key", "default"}, 1));
  for (const auto& [key, value] : dict.AsDict().entries) {
    BATON_ASSIGN_OR_RETURN(const bool equal, AreEqual(runtime, key, *bound[0]));
    if (equal) return value;
  }
  return bound[1].value_or(Value::None());
}

// Lists and dicts are immutable.
absl::StatusOr<Value> Copy(Runtime&, const Value& input) { return input; }

absl::StatusOr<Value> ListIndex(Runtime& runtime, const Value& list, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"value"}, 1));
  const std::vector<Value>& items = list.AsList().items;
  for (size_t i = 0; i < items.size(); ++i) {
    BATON_ASSIGN_OR_RETURN(const bool equal, AreEqual(runtime, items[i], *bound[0]));
    if (equal) return Value::Int(static_cast<int64_t>(i));
  }
  return absl::InvalidArgumentError("the value is not in the list");
}

absl::StatusOr<Value> ListCount(Runtime& runtime, const Value& list, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"value"}, 1));
  int64_t count = 0;
  for (const Value& item : list.AsList().items) {
    BATON_ASSIGN_OR_RETURN(const bool equal, AreEqual(runtime, item, *bound[0]));
    count += equal ? 1 : 0;
  }
  return Value::Int(count);
}

absl::StatusOr<Value> LoopCycle(Runtime&, const Value& loop, const Arguments& arguments) {
  if (!arguments.named.empty()) return absl::InvalidArgumentError("cycle takes no named arguments");
  if (arguments.positional.empty()) return absl::InvalidArgumentError("no items for cycling given");
  return arguments.positional[loop.AsLoop().index0 % arguments.positional.size()];
}

constexpr Function kDictMethods[] = {
    {"items", DictItems}, {"keys", DictKeys}, {"values", DictValues}, {"get", DictGet}, {"copy", Copy},
};
constexpr Function kListMethods[] = {{"index", ListIndex}, {"count", ListCount}, {"copy", Copy}};
constexpr Function kLoopMethods[] = {{"cycle", LoopCycle}};

constexpr std::string_view kForbiddenDictMethods[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kForbiddenListMethods[] = {"append", "clear",  "extend",  "insert",
                                                      "pop",    "remove", "reverse", "sort"};
constexpr std::string_view kUnsupportedDictMethods[] = {"fromkeys"};
constexpr std::string_view kUnsupportedStringMethods[] = {
    "casefold",  "center",       "encode",    "expandtabs",  "format_map", "isascii",
    "isdecimal", "isidentifier", "isnumeric", "isprintable", "istitle",    "ljust",
    "maketrans", "partition",    "rjust",     "rpartition",  "swapcase",   "translate"};

template <size_t N>
bool Contains(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

BuiltinFn FindMethod(Kind receiver, std::string_view name) {
  switch (receiver) {
    case Kind::kString: return FindStringMethod(name);
    case Kind::kDict: return FindBuiltin(kDictMethods, name);
    case Kind::kList: return FindBuiltin(kListMethods, name);
    case Kind::kLoop: return FindBuiltin(kLoopMethods, name);
    default: return {};
  }
}

bool IsMethodName(std::string_view name) {
  for (const Kind kind : {Kind::kString, Kind::kDict, Kind::kList, Kind::kLoop}) {
    if (FindMethod(kind, name).is_known() || IsForbiddenMethodOf(kind, name)) return true;
  }
  return false;
}

bool IsForbiddenMethodOf(Kind receiver, std::string_view name) {
  return (receiver == Kind::kDict && Contains(kForbiddenDictMethods, name)) ||
         (receiver == Kind::kList && Contains(kForbiddenListMethods, name));
}

bool IsUnsupportedMethodOf(Kind receiver, std::string_view name) {
  switch (receiver) {
    case Kind::kString: return Contains(kUnsupportedStringMethods, name);
    case Kind::kDict: return Contains(kUnsupportedDictMethods, name);
    default: return false;
  }
}

}  // namespace baton::jinja
