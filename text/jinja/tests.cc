// SPDX-License-Identifier: Apache-2.0
// Implements tests: the operators after "is".
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "text/jinja/builtins.h"
#include "text/jinja/operators.h"
#include "text/jinja/text.h"
#include "text/utf8.h"

namespace baton::jinja {
namespace {

template <bool (*Predicate)(const Value&)>
absl::StatusOr<Value> Check(Runtime&, const Value& input) {
  return Value::Bool(Predicate(input));
}

template <Kind kind>
bool IsOf(const Value& value) {
  return value.is(kind);
}

bool IsDefined(const Value& value) { return !value.is(Kind::kUndefined); }
bool IsTrueItself(const Value& value) { return value.is(Kind::kBool) && value.AsBool(); }
bool IsFalseItself(const Value& value) { return value.is(Kind::kBool) && !value.AsBool(); }
bool IsNumber(const Value& value) { return value.IsNumber(); }
bool IsCallable(const Value& value) {
  return value.is(Kind::kFunction) || value.is(Kind::kMethod) || value.is(Kind::kMacro);
}
// In Jinja, an undefined value is an empty sequence.
bool IsSequence(const Value& value) {
  return value.is(Kind::kList) || value.is(Kind::kDict) || value.is(Kind::kString) || value.is(Kind::kUndefined);
}
bool IsIterable(const Value& value) { return IsSequence(value) || value.is(Kind::kLoop); }

template <bool (*HasCase)(char32_t), bool (*HasOther)(char32_t)>
absl::StatusOr<Value> CheckCase(Runtime& runtime, const Value& input) {
  BATON_ASSIGN_OR_RETURN(const Value text, ToText(runtime, input));
  BATON_RETURN_IF_ERROR(runtime.heap.Step(text.AsString().size()));
  bool any = false;
  for (std::string_view rest = text.AsString(); !rest.empty();) {
    const Utf8Unit unit = ReadUtf8(rest);
    if (HasOther(unit.code_point) || IsTitle(unit.code_point)) return Value::Bool(false);
    any |= HasCase(unit.code_point);
    rest.remove_prefix(unit.length);
  }
  return Value::Bool(any);
}

absl::StatusOr<int64_t> Integer(const Value& input) { return ExpectInt(input, "the tested value"); }

template <int Remainder>
absl::StatusOr<Value> IsOddOrEven(Runtime&, const Value& input) {
  BATON_ASSIGN_OR_RETURN(const int64_t value, Integer(input));
  return Value::Bool((value & 1) == Remainder);
}

absl::StatusOr<Value> IsDivisibleBy(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"num"}, 1));
  BATON_ASSIGN_OR_RETURN(const int64_t value, Integer(input));
  BATON_ASSIGN_OR_RETURN(const int64_t divisor, ExpectInt(*bound[0], "a divisor"));
  BATON_ASSIGN_OR_RETURN(const Value remainder,
                         Arithmetic(runtime, BinaryOp::kModulo, Value::Int(value), Value::Int(divisor)));
  return Value::Bool(remainder.AsInt() == 0);
}

absl::StatusOr<Value> IsSameAs(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"other"}, 1));
  if (input.kind() != bound[0]->kind()) return Value::Bool(false);
  if (input.is(Kind::kList) || input.is(Kind::kDict)) return Value::Bool(input.identity() == bound[0]->identity());
  BATON_ASSIGN_OR_RETURN(const bool equal, AreEqual(runtime, input, *bound[0]));
  return Value::Bool(equal);
}

template <CompareOp Op>
absl::StatusOr<Value> CompareTest(Runtime& runtime, const Value& input, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"other"}, 1));
  BATON_ASSIGN_OR_RETURN(const bool holds, CompareValues(runtime, Op, input, *bound[0]));
  return Value::Bool(holds);
}

constexpr Function kTests[] = {
    {"defined", Check<IsDefined>},
    {"undefined", Check<IsOf<Kind::kUndefined>>},
    {"none", Check<IsOf<Kind::kNone>>},
    {"boolean", Check<IsOf<Kind::kBool>>},
    {"true", Check<IsTrueItself>},
    {"false", Check<IsFalseItself>},
    {"integer", Check<IsOf<Kind::kInt>>},
    {"float", Check<IsOf<Kind::kFloat>>},
    {"number", Check<IsNumber>},
    {"string", Check<IsOf<Kind::kString>>},
    {"mapping", Check<IsOf<Kind::kDict>>},
    {"sequence", Check<IsSequence>},
    {"iterable", Check<IsIterable>},
    {"callable", Check<IsCallable>},
    {"lower", CheckCase<IsLower, IsUpper>},
    {"upper", CheckCase<IsUpper, IsLower>},
    {"odd", IsOddOrEven<1>},
    {"even", IsOddOrEven<0>},
    {"divisibleby", IsDivisibleBy},
    {"sameas", IsSameAs},
    {"in", CompareTest<CompareOp::kIn>},
    {"==", CompareTest<CompareOp::kEqual>},
    {"eq", CompareTest<CompareOp::kEqual>},
    {"equalto", CompareTest<CompareOp::kEqual>},
    {"!=", CompareTest<CompareOp::kNotEqual>},
    {"ne", CompareTest<CompareOp::kNotEqual>},
    {"<", CompareTest<CompareOp::kLess>},
    {"lt", CompareTest<CompareOp::kLess>},
    {"lessthan", CompareTest<CompareOp::kLess>},
    {"<=", CompareTest<CompareOp::kLessOrEqual>},
    {"le", CompareTest<CompareOp::kLessOrEqual>},
    {">", CompareTest<CompareOp::kGreater>},
    {"gt", CompareTest<CompareOp::kGreater>},
    {"greaterthan", CompareTest<CompareOp::kGreater>},
    {">=", CompareTest<CompareOp::kGreaterOrEqual>},
    {"ge", CompareTest<CompareOp::kGreaterOrEqual>},
};

}  // namespace

BuiltinFn FindTest(std::string_view name) { return FindBuiltin(kTests, name); }

}  // namespace baton::jinja
