// SPDX-License-Identifier: Apache-2.0
// Implements filters on sequences: lists, dicts and strings. Where Jinja returns a generator, these return a list.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "text/jinja/builtins.h"
#include "text/jinja/operators.h"
#include "text/jinja/text.h"

namespace baton::jinja {
namespace {

absl::StatusOr<Value> LengthFilter(Runtime& runtime, const Value& input) {
  BATON_ASSIGN_OR_RETURN(const int64_t length, Length(runtime, input));
  return Value::Int(length);
}

absl::StatusOr<Value> ListFilter(Runtime& runtime, const Value& input) {
  BATON_ASSIGN_OR_RETURN(std::vector<Value> items, Items(runtime, input));
  return runtime.heap.NewList(std::move(items));
}

absl::StatusOr<Value> ItemsFilter(Runtime& runtime, const Value& input, const Arguments& arguments) {
  if (input.is(Kind::kUndefined)) return runtime.heap.NewList({});
  if (!input.is(Kind::kDict)) return absl::InvalidArgumentError("can only get item pairs from a mapping");
  return FindMethod(Kind::kDict, "items")(runtime, input, arguments);
}

template <bool First>
absl::StatusOr<Value> FirstOrLast(Runtime& runtime, const Value& input) {
  BATON_ASSIGN_OR_RETURN(const std::vector<Value> items, Items(runtime, input));
  if (items.empty()) return Value::Undefined(First ? "the first item of nothing" : "the last item of nothing");
  return First ? items.front() : items.back();
}

absl::StatusOr<Value> Reverse(Runtime& runtime, const Value& input) {
  if (input.is(Kind::kString)) return GetSlice(runtime, input, Value::None(), Value::None(), Value::Int(-1));
  BATON_ASSIGN_OR_RETURN(std::vector<Value> items, Items(runtime, input));
  std::reverse(items.begin(), items.end());
  return runtime.heap.NewList(std::move(items));
}

// Resolves a path of names and indices such as "a.0.b". Without a path, returns `item`.
absl::StatusOr<Value> FollowPath(Runtime& runtime, Value item, const std::optional<Value>& path) {
  if (!path || path->is(Kind::kNone)) return item;
  if (path->IsInteger()) return GetItem(runtime, item, *path);
  BATON_ASSIGN_OR_RETURN(const std::string_view text, ExpectString(*path, "an attribute"));
  for (const absl::string_view piece : absl::StrSplit(ToAbsl(text), '.')) {
    const std::string_view part = FromAbsl(piece);
    int64_t index = 0;
    const bool is_index = !part.empty() && part[0] >= '0' && part[0] <= '9' && absl::SimpleAtoi(piece, &index);
    // In paths, unlike in item.name, Jinja prefers dict entries to methods.
    BATON_ASSIGN_OR_RETURN(item, GetItem(runtime, item, is_index ? Value::Int(index) : Value::String(part)));
  }
  return item;
}

absl::StatusOr<Value> Join(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"d", "attribute"}));
  BATON_ASSIGN_OR_RETURN(const std::vector<Value> items, Items(runtime, input));
  BATON_ASSIGN_OR_RETURN(const Value separator, ToText(runtime, bound[0].value_or(Value::String(""))));
  std::string joined;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) BATON_RETURN_IF_ERROR(AppendText(runtime, separator, joined));
    BATON_ASSIGN_OR_RETURN(const Value item, FollowPath(runtime, items[i], bound[1]));
    BATON_RETURN_IF_ERROR(AppendText(runtime, item, joined));
  }
  return runtime.heap.NewString(std::move(joined));
}

// Returns the key by which filters compare `item`: the value at `path`, in lower case unless `case_sensitive`.
absl::StatusOr<Value> SortKey(Runtime& runtime, const Value& item, const std::optional<Value>& path,
                              bool case_sensitive) {
  BATON_ASSIGN_OR_RETURN(const Value key, FollowPath(runtime, item, path));
  if (case_sensitive || !key.is(Kind::kString)) return key;
  return runtime.heap.NewString(ToLower(key.AsString()));
}

struct Keyed {
  Value key;
  Value item;
};

absl::StatusOr<std::vector<Keyed>> WithKeys(Runtime& runtime, const std::vector<Value>& items,
                                            const std::optional<Value>& path, bool case_sensitive) {
  BATON_RETURN_IF_ERROR(runtime.heap.Reserve(items.size() * sizeof(Keyed)));
  std::vector<Keyed> keyed;
  keyed.reserve(items.size());
  for (const Value& item : items) {
    BATON_ASSIGN_OR_RETURN(const Value key, SortKey(runtime, item, path, case_sensitive));
    keyed.push_back({key, item});
  }
  return keyed;
}

absl::StatusOr<std::vector<Value>> SortByKeys(Runtime& runtime, std::vector<Keyed> keyed, bool reverse) {
  absl::Status error;
  // After an error all keys compare equal, because stable_sort needs a consistent order.
  std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
    if (!error.ok()) return false;
    const absl::StatusOr<bool> less = reverse ? IsLess(runtime, b.key, a.key) : IsLess(runtime, a.key, b.key);
    if (!less.ok()) error = less.status();
    return less.ok() && *less;
  });
  BATON_RETURN_IF_ERROR(error);
  std::vector<Value> items;
  items.reserve(keyed.size());
  for (const Keyed& each : keyed) items.push_back(each.item);
  return items;
}

absl::StatusOr<Value> Sort(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"reverse", "case_sensitive", "attribute"}));
  BATON_ASSIGN_OR_RETURN(std::vector<Value> items, Items(runtime, input));
  if (bound[2] && bound[2]->is(Kind::kString) && bound[2]->AsString().find(',') != std::string_view::npos) {
    return absl::UnimplementedError("sorting by several attributes is not supported");
  }
  BATON_ASSIGN_OR_RETURN(std::vector<Keyed> keyed, WithKeys(runtime, items, bound[2], IsTrue(bound[1])));
  BATON_ASSIGN_OR_RETURN(items, SortByKeys(runtime, std::move(keyed), IsTrue(bound[0])));
  return runtime.heap.NewList(std::move(items));
}

absl::StatusOr<Value> DictSort(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"case_sensitive", "by", "reverse"}));
  BATON_ASSIGN_OR_RETURN(const std::string_view by, StringOr(bound[1], "key", "'by'"));
  if (by != "key" && by != "value") return absl::InvalidArgumentError("dictsort sorts by 'key' or 'value'");
  BATON_ASSIGN_OR_RETURN(const Value pairs, ItemsFilter(runtime, input, {}));
  BATON_ASSIGN_OR_RETURN(std::vector<Keyed> keyed,
                         WithKeys(runtime, pairs.AsList().items, Value::Int(by == "key" ? 0 : 1), IsTrue(bound[0])));
  BATON_ASSIGN_OR_RETURN(std::vector<Value> items, SortByKeys(runtime, std::move(keyed), IsTrue(bound[2])));
  return runtime.heap.NewList(std::move(items));
}

template <bool Max>
absl::StatusOr<Value> MinOrMax(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"case_sensitive", "attribute"}));
  BATON_ASSIGN_OR_RETURN(const std::vector<Value> items, Items(runtime, input));
  if (items.empty()) return Value::Undefined("an item of nothing");
  BATON_ASSIGN_OR_RETURN(const std::vector<Keyed> keyed, WithKeys(runtime, items, bound[1], IsTrue(bound[0])));
  const Keyed* best = &keyed[0];
  for (const Keyed& candidate : keyed) {
    BATON_ASSIGN_OR_RETURN(const bool better,
                           Max ? IsLess(runtime, best->key, candidate.key) : IsLess(runtime, candidate.key, best->key));
    if (better) best = &candidate;
  }
  return best->item;
}

absl::StatusOr<Value> Unique(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"case_sensitive", "attribute"}));
  BATON_ASSIGN_OR_RETURN(const std::vector<Value> items, Items(runtime, input));
  BATON_ASSIGN_OR_RETURN(const std::vector<Keyed> keyed, WithKeys(runtime, items, bound[1], IsTrue(bound[0])));
  std::vector<Value> unique;
  std::vector<Value> seen;
  for (const auto& [key, item] : keyed) {
    bool is_seen = false;
    for (size_t i = 0; i < seen.size() && !is_seen; ++i) {
      BATON_ASSIGN_OR_RETURN(is_seen, AreEqual(runtime, seen[i], key));
    }
    if (is_seen) continue;
    seen.push_back(key);
    unique.push_back(item);
  }
  return runtime.heap.NewList(std::move(unique));
}

absl::StatusOr<Value> Sum(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"attribute", "start"}));
  BATON_ASSIGN_OR_RETURN(const std::vector<Value> items, Items(runtime, input));
  Value sum = bound[1].value_or(Value::Int(0));
  for (const Value& each : items) {
    BATON_ASSIGN_OR_RETURN(const Value item, FollowPath(runtime, each, bound[0]));
    if (item.is(Kind::kString)) return absl::InvalidArgumentError("strings cannot be summed");
    BATON_ASSIGN_OR_RETURN(sum, Arithmetic(runtime, BinaryOp::kAdd, sum, item));
  }
  return sum;
}

// In Jinja, map, select etc. treat every false value, such as none, as an empty sequence.
absl::StatusOr<std::vector<Value>> ItemsIfTrue(Runtime& runtime, const Value& input) {
  if (!IsTrue(input)) return std::vector<Value>();
  return Items(runtime, input);
}

// map(attribute='a', default=x) or map('filter', filter arguments...).
absl::StatusOr<Value> Map(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(std::vector<Value> items, ItemsIfTrue(runtime, input));
  if (arguments.positional.empty()) {
    BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"attribute", "default"}, 1));
    for (Value& item : items) {
      BATON_ASSIGN_OR_RETURN(item, FollowPath(runtime, item, bound[0]));
      if (item.is(Kind::kUndefined) && bound[1]) item = *bound[1];
    }
    return runtime.heap.NewList(std::move(items));
  }
  BATON_ASSIGN_OR_RETURN(const std::string_view name, ExpectString(arguments.positional[0], "a filter's name"));
  const BuiltinFn filter = FindFilter(name);
  if (!filter.is_known()) return absl::UnimplementedError(Concat("the filter '", name, "' is not supported"));
  const Arguments rest{.positional = {arguments.positional.begin() + 1, arguments.positional.end()},
                       .named = arguments.named};
  for (Value& item : items) {
    const DepthGuard guard(runtime.heap);  // the filter may be map again
    BATON_RETURN_IF_ERROR(guard.status());
    BATON_RETURN_IF_ERROR(runtime.heap.Step());
    BATON_ASSIGN_OR_RETURN(item, filter(runtime, item, rest));
  }
  return runtime.heap.NewList(std::move(items));
}

// select('test', test arguments...) and selectattr('attribute', 'test', test arguments...). Without a test, selects
// items that are true.
template <bool Wanted, bool OfAttribute>
absl::StatusOr<Value> Select(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const std::vector<Value> items, ItemsIfTrue(runtime, input));
  const std::vector<Value>& given = arguments.positional;
  constexpr size_t kTestAt = OfAttribute ? 1 : 0;
  if (given.size() < kTestAt) return absl::InvalidArgumentError("missing argument 'attribute'");
  const std::optional<Value> path = OfAttribute ? std::optional(given[0]) : std::nullopt;
  BuiltinFn test;
  Arguments rest{.positional = {}, .named = arguments.named};
  if (given.size() > kTestAt) {
    BATON_ASSIGN_OR_RETURN(const std::string_view name, ExpectString(given[kTestAt], "a test's name"));
    test = FindTest(name);
    if (!test.is_known()) return absl::UnimplementedError(Concat("the test '", name, "' is not supported"));
    rest.positional.assign(given.begin() + kTestAt + 1, given.end());
  }
  std::vector<Value> chosen;
  for (const Value& item : items) {
    BATON_RETURN_IF_ERROR(runtime.heap.Step());
    BATON_ASSIGN_OR_RETURN(Value verdict, FollowPath(runtime, item, path));
    if (test.is_known()) {
      BATON_ASSIGN_OR_RETURN(verdict, test(runtime, verdict, rest));
    }
    if (IsTrue(verdict) == Wanted) chosen.push_back(item);
  }
  return runtime.heap.NewList(std::move(chosen));
}

constexpr Function kSequenceFilters[] = {
    {"length", LengthFilter},
    {"count", LengthFilter},
    {"list", ListFilter},
    {"items", ItemsFilter},
    {"first", FirstOrLast<true>},
    {"last", FirstOrLast<false>},
    {"reverse", Reverse},
    {"join", Join},
    {"sort", Sort},
    {"dictsort", DictSort},
    {"min", MinOrMax<false>},
    {"max", MinOrMax<true>},
    {"unique", Unique},
    {"sum", Sum},
    {"map", Map},
    {"select", Select<true, false>},
    {"reject", Select<false, false>},
    {"selectattr", Select<true, true>},
    {"rejectattr", Select<false, true>},
};

}  // namespace

BuiltinFn FindSequenceFilter(std::string_view name) { return FindBuiltin(kSequenceFilters, name); }

}  // namespace baton::jinja
