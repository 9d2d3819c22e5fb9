// SPDX-License-Identifier: Apache-2.0
// Implements GetAttribute, GetItem and GetSlice (operators.h).
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "common/strings.h"
#include "text/jinja/operators.h"
#include "text/jinja/text.h"
#include "text/utf8.h"

namespace baton::jinja {
namespace {

Value LoopAttribute(const Loop& loop, std::string_view name) {
  const auto index0 = static_cast<int64_t>(loop.index0);
  const auto length = static_cast<int64_t>(loop.items.size());
  if (name == "index") return Value::Int(index0 + 1);
  if (name == "index0") return Value::Int(index0);
  if (name == "revindex") return Value::Int(length - index0);
  if (name == "revindex0") return Value::Int(length - index0 - 1);
  if (name == "first") return Value::Bool(index0 == 0);
  if (name == "last") return Value::Bool(index0 + 1 == length);
  if (name == "length") return Value::Int(length);
  if (name == "depth") return Value::Int(1);  // always 1, because recursive loops are not supported
  if (name == "depth0") return Value::Int(0);
  if (name == "previtem" && index0 > 0) return loop.items[index0 - 1];
  if (name == "nextitem" && index0 + 1 < length) return loop.items[index0 + 1];
  return Value::Undefined(name, Kind::kLoop);
}

// Converts a Python index, which counts from the end when negative. Returns nullopt when out of range.
std::optional<size_t> Resolve(int64_t index, size_t size) {
  const auto length = static_cast<int64_t>(size);
  if (index < 0) index += length;
  if (index < 0 || index >= length) return std::nullopt;
  return static_cast<size_t>(index);
}

absl::StatusOr<Value> ItemOfSequence(Runtime& runtime, const Value& sequence, int64_t index) {
  if (sequence.is(Kind::kList)) {
    const std::vector<Value>& items = sequence.AsList().items;
    const std::optional<size_t> at = Resolve(index, items.size());
    return at ? items[*at] : Value::Undefined("item", Kind::kList);
  }
  const std::string_view text = sequence.AsString();
  BATON_RETURN_IF_ERROR(runtime.heap.Step(text.size()));
  const std::optional<size_t> at = Resolve(index, CountCodePoints(text));
  if (!at) return Value::Undefined("item", Kind::kString);
  const size_t begin = ByteOffset(text, *at);
  return Value::String(text.substr(begin, ByteOffset(text.substr(begin), 1)));
}

// The result of Python's slice.indices().
struct Range {
  int64_t start;
  int64_t stop;
  int64_t step;
};

absl::StatusOr<int64_t> Bound(const Value& value, int64_t if_absent, int64_t length, int64_t step) {
  if (value.is(Kind::kNone)) return if_absent;
  BATON_ASSIGN_OR_RETURN(int64_t bound, ExpectInt(value, "a slice index"));
  const int64_t lowest = step < 0 ? -1 : 0;
  const int64_t highest = step < 0 ? length - 1 : length;
  if (bound < 0) bound = bound < -length ? lowest : bound + length;
  return std::clamp(bound, lowest, std::max(lowest, highest));
}

absl::StatusOr<Range> ResolveSlice(const Value& start, const Value& stop, const Value& step, int64_t length) {
  Range range{0, 0, 1};
  if (!step.is(Kind::kNone)) {
    BATON_ASSIGN_OR_RETURN(range.step, ExpectInt(step, "a slice step"));
  }
  if (range.step == 0) return absl::InvalidArgumentError("slice step cannot be zero");
  // A step beyond the length has the same effect as length + 1. The clamp prevents overflow in ForEachIndex.
  range.step = std::clamp<int64_t>(range.step, -length - 1, length + 1);
  const bool backwards = range.step < 0;
  BATON_ASSIGN_OR_RETURN(range.start, Bound(start, backwards ? length - 1 : 0, length, range.step));
  BATON_ASSIGN_OR_RETURN(range.stop, Bound(stop, backwards ? -1 : length, length, range.step));
  return range;
}

template <typename Visit>
void ForEachIndex(const Range& range, Visit visit) {
  for (int64_t i = range.start; range.step > 0 ? i < range.stop : i > range.stop; i += range.step) visit(i);
}

}  // namespace

absl::StatusOr<Value> GetAttribute(Runtime& runtime, const Value& object, std::string_view name) {
  if (object.is(Kind::kUndefined)) return UndefinedError(object);
  const Kind kind = object.kind();
  if (FindMethod(kind, name).is_known() || IsForbiddenMethodOf(kind, name) || IsUnsupportedMethodOf(kind, name)) {
    return runtime.heap.NewMethod(object, name);
  }
  if (object.is(Kind::kLoop)) return LoopAttribute(object.AsLoop(), name);
  if (object.is(Kind::kDict) || object.is(Kind::kNamespace)) {
    BATON_RETURN_IF_ERROR(runtime.heap.Step(object.AsDict().entries.size()));
    if (const Value* value = object.AsDict().Find(name)) return *value;
  }
  return Value::Undefined(name, object.kind());
}

absl::StatusOr<Value> GetItem(Runtime& runtime, const Value& object, const Value& key) {
  if (object.is(Kind::kUndefined)) return UndefinedError(object);
  if (object.is(Kind::kDict)) {
    BATON_RETURN_IF_ERROR(runtime.heap.Step(object.AsDict().entries.size()));
    for (const auto& [name, value] : object.AsDict().entries) {
      BATON_ASSIGN_OR_RETURN(const bool equal, AreEqual(runtime, name, key));
      if (equal) return value;
    }
  }
  if ((object.is(Kind::kList) || object.is(Kind::kString)) && key.IsInteger()) {
    return ItemOfSequence(runtime, object, key.AsInt());
  }
  if (key.is(Kind::kString)) return GetAttribute(runtime, object, key.AsString());
  return Value::Undefined("item", object.kind());
}

absl::StatusOr<Value> GetSlice(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
                               const Value& step) {
  if (object.is(Kind::kUndefined)) return UndefinedError(object);
  if (!object.is(Kind::kList) && !object.is(Kind::kString)) {
    return absl::InvalidArgumentError(Concat("a ", TypeName(object.kind()), " cannot be sliced"));
  }
  BATON_ASSIGN_OR_RETURN(const int64_t length, Length(runtime, object));
  BATON_ASSIGN_OR_RETURN(const Range range, ResolveSlice(start, stop, step, length));
  if (object.is(Kind::kList)) {
    const List& list = object.AsList();
    std::vector<Value> items;
    ForEachIndex(range, [&](int64_t i) { items.push_back(list.items[i]); });
    return runtime.heap.NewSequence(std::move(items), list.is_tuple);
  }
  const std::string_view text = object.AsString();
  if (range.step == 1) {
    if (range.stop <= range.start) return Value::String({});
    const size_t begin = ByteOffset(text, range.start);
    return Value::String(text.substr(begin, ByteOffset(text.substr(begin), range.stop - range.start)));
  }
  BATON_RETURN_IF_ERROR(runtime.heap.Reserve(text.size() * sizeof(std::string_view)));
  const std::vector<std::string_view> characters = CodePoints(text);
  std::string slice;
  ForEachIndex(range, [&](int64_t i) { slice += characters[i]; });
  return runtime.heap.NewString(std::move(slice));
}

}  // namespace baton::jinja
