// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/operators.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "common/status_macros.h"
#include "common/strings.h"
#include "text/jinja/text.h"
#include "text/utf8.h"

namespace baton::jinja {
namespace {

absl::Status UnsupportedOperands(std::string_view op, const Value& left, const Value& right) {
  for (const Value* value : {&left, &right}) {
    if (value->is(Kind::kUndefined)) return UndefinedError(*value);
  }
  return absl::InvalidArgumentError(Concat("unsupported operand types for ", op, ": '", TypeName(left.kind()),
                                           "' and '", TypeName(right.kind()), "'"));
}

absl::Status IntegerOverflow() { return absl::InvalidArgumentError("integer overflow"); }

std::string_view Spelling(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd: return "+";
    case BinaryOp::kSubtract: return "-";
    case BinaryOp::kMultiply: return "*";
    case BinaryOp::kDivide: return "/";
    case BinaryOp::kFloorDivide: return "//";
    case BinaryOp::kModulo: return "%";
    case BinaryOp::kPower: return "**";
    case BinaryOp::kAnd: return "and";
    case BinaryOp::kOr: return "or";
  }
  return "?";
}

absl::StatusOr<bool> SequencesAreEqual(Runtime& runtime, const List& left, const List& right) {
  if (left.items.size() != right.items.size() || left.is_tuple != right.is_tuple) return false;
  for (size_t i = 0; i < left.items.size(); ++i) {
    BATON_ASSIGN_OR_RETURN(const bool equal, AreEqual(runtime, left.items[i], right.items[i]));
    if (!equal) return false;
  }
  return true;
}

absl::StatusOr<const Value*> FindKey(Runtime& runtime, const Dict& dict, const Value& key) {
  BATON_RETURN_IF_ERROR(runtime.heap.Step(dict.entries.size() * sizeof(Value)));
  for (const auto& [name, value] : dict.entries) {
    BATON_ASSIGN_OR_RETURN(const bool equal, AreEqual(runtime, name, key));
    if (equal) return &value;
  }
  return nullptr;
}

absl::StatusOr<bool> DictsAreEqual(Runtime& runtime, const Dict& left, const Dict& right) {
  if (left.entries.size() != right.entries.size()) return false;
  for (const auto& [key, value] : left.entries) {
    BATON_ASSIGN_OR_RETURN(const Value* other, FindKey(runtime, right, key));
    if (other == nullptr) return false;
    BATON_ASSIGN_OR_RETURN(const bool equal, AreEqual(runtime, value, *other));
    if (!equal) return false;
  }
  return true;
}

absl::StatusOr<Value> FloorDivide(int64_t left, int64_t right) {
  if (right == 0) return absl::InvalidArgumentError("integer division by zero");
  if (right == -1) {
    if (left == std::numeric_limits<int64_t>::min()) return IntegerOverflow();
    return Value::Int(-left);
  }
  const int64_t quotient = left / right;
  return Value::Int(left % right != 0 && (left < 0) != (right < 0) ? quotient - 1 : quotient);
}

absl::StatusOr<Value> Modulo(int64_t left, int64_t right) {
  if (right == 0) return absl::InvalidArgumentError("integer modulo by zero");
  if (right == -1) return Value::Int(0);
  const int64_t remainder = left % right;  // C++ takes the sign of `left`, Python the sign of `right`
  return Value::Int(remainder != 0 && (remainder < 0) != (right < 0) ? remainder + right : remainder);
}

absl::StatusOr<Value> Power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return absl::InvalidArgumentError("0 cannot be raised to a negative power");
    return Value::Float(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  // Powers of -1, 0 and 1 depend only on whether the exponent is odd. Other bases overflow within 64 iterations.
  if (base >= -1 && base <= 1 && exponent > 1) exponent = 2 - exponent % 2;
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(result, base, &result)) return IntegerOverflow();
  }
  return Value::Int(result);
}

absl::StatusOr<Value> IntegerArithmetic(BinaryOp op, int64_t left, int64_t right) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case BinaryOp::kAdd: overflow = __builtin_add_overflow(left, right, &result); break;
    case BinaryOp::kSubtract: overflow = __builtin_sub_overflow(left, right, &result); break;
    case BinaryOp::kMultiply: overflow = __builtin_mul_overflow(left, right, &result); break;
    case BinaryOp::kDivide:
      if (right == 0) return absl::InvalidArgumentError("division by zero");
      return Value::Float(static_cast<double>(left) / static_cast<double>(right));
    case BinaryOp::kFloorDivide: return FloorDivide(left, right);
    case BinaryOp::kModulo: return Modulo(left, right);
    case BinaryOp::kPower: return Power(left, right);
    default: return absl::InternalError("not an arithmetic operator");
  }
  if (overflow) return IntegerOverflow();
  return Value::Int(result);
}

absl::StatusOr<Value> FloatArithmetic(BinaryOp op, double left, double right) {
  switch (op) {
    case BinaryOp::kAdd: return Value::Float(left + right);
    case BinaryOp::kSubtract: return Value::Float(left - right);
    case BinaryOp::kMultiply: return Value::Float(left * right);
    case BinaryOp::kPower: return Value::Float(std::pow(left, right));
    default: break;
  }
  if (right == 0) return absl::InvalidArgumentError("division by zero");
  if (op == BinaryOp::kDivide) return Value::Float(left / right);
  if (op == BinaryOp::kFloorDivide) return Value::Float(std::floor(left / right));
  const double remainder = std::fmod(left, right);
  return Value::Float(remainder != 0 && (remainder < 0) != (right < 0) ? remainder + right : remainder);
}

absl::StatusOr<Value> ConcatLists(Runtime& runtime, const List& left, const List& right) {
  BATON_RETURN_IF_ERROR(runtime.heap.Step((left.items.size() + right.items.size()) * sizeof(Value)));
  std::vector<Value> items = left.items;
  items.insert(items.end(), right.items.begin(), right.items.end());
  return runtime.heap.NewSequence(std::move(items), left.is_tuple);
}

absl::StatusOr<Value> Repeat(Runtime& runtime, const Value& sequence, int64_t count) {
  const size_t times = count < 0 ? 0 : static_cast<size_t>(count);
  const bool is_string = sequence.is(Kind::kString);
  const size_t unit = is_string ? sequence.AsString().size() : sequence.AsList().items.size() * sizeof(Value);
  if (unit != 0 && times > SIZE_MAX / 2 / unit) return runtime.heap.Reserve(SIZE_MAX);
  // Check the limit before building the result: a template chooses `count`.
  BATON_RETURN_IF_ERROR(runtime.heap.Reserve(unit * times));
  if (is_string) {
    std::string text;
    text.reserve(unit * times);
    for (size_t i = 0; unit != 0 && i < times; ++i) text += sequence.AsString();
    return runtime.heap.NewString(std::move(text));
  }
  const List& list = sequence.AsList();
  std::vector<Value> items;
  for (size_t i = 0; unit != 0 && i < times; ++i) items.insert(items.end(), list.items.begin(), list.items.end());
  return runtime.heap.NewSequence(std::move(items), list.is_tuple);
}

bool IsStringOrList(const Value& value) { return value.is(Kind::kString) || value.is(Kind::kList); }

}  // namespace

absl::Status UndefinedError(const Value& undefined) {
  const std::string_view owner = TypeName(undefined.owner());
  switch (undefined.owner()) {
    case Kind::kUndefined: return absl::InvalidArgumentError(Concat("'", undefined.AsString(), "' is undefined"));
    case Kind::kNone: return absl::InvalidArgumentError(Concat("'None' has no attribute '", undefined.AsString(), "'"));
    default:
      return absl::InvalidArgumentError(Concat("'", owner, " object' has no attribute '", undefined.AsString(), "'"));
  }
}

bool IsTrue(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone: return false;
    case Kind::kBool:
    case Kind::kInt: return value.AsInt() != 0;
    case Kind::kFloat: return value.AsFloat() != 0;
    case Kind::kString: return !value.AsString().empty();
    case Kind::kList: return !value.AsList().items.empty();
    case Kind::kDict: return !value.AsDict().entries.empty();
    default: return true;
  }
}

absl::StatusOr<bool> AreEqual(Runtime& runtime, const Value& left, const Value& right) {
  BATON_RETURN_IF_ERROR(runtime.heap.Step());
  if (left.IsNumber() && right.IsNumber()) {
    if (left.IsInteger() && right.IsInteger()) return left.AsInt() == right.AsInt();
    return left.AsFloat() == right.AsFloat();
  }
  if (left.kind() != right.kind()) return false;
  const DepthGuard guard(runtime.heap);
  BATON_RETURN_IF_ERROR(guard.status());
  switch (left.kind()) {
    case Kind::kUndefined:
    case Kind::kNone: return true;
    case Kind::kString:
      if (left.AsString().size() != right.AsString().size()) return false;
      BATON_RETURN_IF_ERROR(runtime.heap.Step(left.AsString().size()));
      return left.AsString() == right.AsString();
    case Kind::kList: return SequencesAreEqual(runtime, left.AsList(), right.AsList());
    case Kind::kDict: return DictsAreEqual(runtime, left.AsDict(), right.AsDict());
    default: return left.identity() == right.identity();
  }
}

absl::StatusOr<bool> IsLess(Runtime& runtime, const Value& left, const Value& right) {
  BATON_RETURN_IF_ERROR(runtime.heap.Step());
  if (left.IsNumber() && right.IsNumber()) {
    if (left.IsInteger() && right.IsInteger()) return left.AsInt() < right.AsInt();
    return left.AsFloat() < right.AsFloat();
  }
  if (left.is(Kind::kString) && right.is(Kind::kString)) {
    BATON_RETURN_IF_ERROR(runtime.heap.Step(std::min(left.AsString().size(), right.AsString().size())));
    return left.AsString() < right.AsString();  // the order of UTF-8 bytes is the order of code points
  }
  if (left.is(Kind::kList) && right.is(Kind::kList) && left.AsList().is_tuple == right.AsList().is_tuple) {
    const DepthGuard guard(runtime.heap);
    BATON_RETURN_IF_ERROR(guard.status());
    const std::vector<Value>& a = left.AsList().items;
    const std::vector<Value>& b = right.AsList().items;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      BATON_ASSIGN_OR_RETURN(const bool equal, AreEqual(runtime, a[i], b[i]));
      if (!equal) return IsLess(runtime, a[i], b[i]);
    }
    return a.size() < b.size();
  }
  return UnsupportedOperands("<", left, right);
}

absl::StatusOr<bool> CompareValues(Runtime& runtime, CompareOp op, const Value& left, const Value& right) {
  const auto negated = [](absl::StatusOr<bool> result) {
    if (result.ok()) *result = !*result;
    return result;
  };
  // "<=" is computed as not ">", which would be wrong for NaN.
  const bool unordered =
      (left.is(Kind::kFloat) && std::isnan(left.AsFloat())) || (right.is(Kind::kFloat) && std::isnan(right.AsFloat()));
  switch (op) {
    case CompareOp::kEqual: return AreEqual(runtime, left, right);
    case CompareOp::kNotEqual: return negated(AreEqual(runtime, left, right));
    case CompareOp::kLess: return IsLess(runtime, left, right);
    case CompareOp::kGreater: return IsLess(runtime, right, left);
    case CompareOp::kLessOrEqual:
      if (unordered) return false;
      return negated(IsLess(runtime, right, left));
    case CompareOp::kGreaterOrEqual:
      if (unordered) return false;
      return negated(IsLess(runtime, left, right));
    case CompareOp::kIn: return IsIn(runtime, left, right);
    case CompareOp::kNotIn: return negated(IsIn(runtime, left, right));
  }
  return absl::InternalError("not a comparison");
}

absl::StatusOr<bool> IsIn(Runtime& runtime, const Value& item, const Value& container) {
  switch (container.kind()) {
    case Kind::kUndefined: return false;
    case Kind::kString:
      if (!item.is(Kind::kString)) return UnsupportedOperands("in", item, container);
      BATON_RETURN_IF_ERROR(runtime.heap.Step(container.AsString().size()));
      return container.AsString().find(item.AsString()) != std::string_view::npos;
    case Kind::kList:
      for (const Value& candidate : container.AsList().items) {
        BATON_ASSIGN_OR_RETURN(const bool equal, AreEqual(runtime, item, candidate));
        if (equal) return true;
      }
      return false;
    case Kind::kDict: {
      BATON_ASSIGN_OR_RETURN(const Value* found, FindKey(runtime, container.AsDict(), item));
      return found != nullptr;
    }
    default: return UnsupportedOperands("in", item, container);
  }
}

absl::StatusOr<Value> Arithmetic(Runtime& runtime, BinaryOp op, const Value& left, const Value& right) {
  if (left.IsNumber() && right.IsNumber()) {
    if (left.IsInteger() && right.IsInteger()) return IntegerArithmetic(op, left.AsInt(), right.AsInt());
    return FloatArithmetic(op, left.AsFloat(), right.AsFloat());
  }
  if (op == BinaryOp::kAdd && left.is(Kind::kString) && right.is(Kind::kString)) {
    return runtime.heap.NewString(Concat(left.AsString(), right.AsString()));
  }
  if (op == BinaryOp::kAdd && left.is(Kind::kList) && right.is(Kind::kList) &&
      left.AsList().is_tuple == right.AsList().is_tuple) {
    return ConcatLists(runtime, left.AsList(), right.AsList());
  }
  if (op == BinaryOp::kMultiply && IsStringOrList(left) && right.IsInteger())
    return Repeat(runtime, left, right.AsInt());
  if (op == BinaryOp::kMultiply && left.IsInteger() && IsStringOrList(right))
    return Repeat(runtime, right, left.AsInt());
  if (op == BinaryOp::kModulo && left.is(Kind::kString)) {
    return absl::UnimplementedError("formatting with % is not supported");
  }
  return UnsupportedOperands(Spelling(op), left, right);
}

absl::StatusOr<Value> Negate(const Value& value) {
  if (value.is(Kind::kFloat)) return Value::Float(-value.AsFloat());
  if (value.IsInteger()) return IntegerArithmetic(BinaryOp::kSubtract, 0, value.AsInt());
  if (value.is(Kind::kUndefined)) return UndefinedError(value);
  return absl::InvalidArgumentError(Concat("bad operand type for unary -: '", TypeName(value.kind()), "'"));
}

absl::StatusOr<std::vector<Value>> Items(Runtime& runtime, const Value& value) {
  std::vector<Value> items;
  switch (value.kind()) {
    case Kind::kUndefined: return items;
    case Kind::kList:
      BATON_RETURN_IF_ERROR(runtime.heap.Reserve(value.AsList().items.size() * sizeof(Value)));
      return value.AsList().items;
    case Kind::kDict:
      BATON_RETURN_IF_ERROR(runtime.heap.Reserve(value.AsDict().entries.size() * sizeof(Value)));
      for (const auto& [key, entry] : value.AsDict().entries) items.push_back(key);
      return items;
    case Kind::kString:
      BATON_RETURN_IF_ERROR(runtime.heap.Reserve(value.AsString().size() * sizeof(Value)));
      for (const std::string_view character : CodePoints(value.AsString())) items.push_back(Value::String(character));
      return items;
    default: return absl::InvalidArgumentError(Concat("'", TypeName(value.kind()), "' object is not iterable"));
  }
}

absl::StatusOr<int64_t> Length(Runtime& runtime, const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined: return 0;
    case Kind::kList: return static_cast<int64_t>(value.AsList().items.size());
    case Kind::kDict: return static_cast<int64_t>(value.AsDict().entries.size());
    case Kind::kString:
      BATON_RETURN_IF_ERROR(runtime.heap.Step(value.AsString().size()));
      return static_cast<int64_t>(CountCodePoints(value.AsString()));
    case Kind::kLoop: return static_cast<int64_t>(value.AsLoop().items.size());
    default: return absl::InvalidArgumentError(Concat("object of type '", TypeName(value.kind()), "' has no len()"));
  }
}

}  // namespace baton::jinja
