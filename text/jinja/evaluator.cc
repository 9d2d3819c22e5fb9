// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/evaluator.h"

#include <algorithm>
#include <utility>

#include "common/status_macros.h"
#include "common/strings.h"
#include "text/jinja/operators.h"

namespace baton::jinja {
namespace {

bool IsHashable(const Value& key) {
  return !key.is(Kind::kDict) && !(key.is(Kind::kList) && !key.AsList().is_tuple) && !key.is(Kind::kUndefined);
}

}  // namespace

Evaluator::Evaluator(Runtime& runtime) : runtime_(runtime), scope_(&scopes_.emplace_back()) {}

absl::StatusOr<std::string> Evaluator::Run(const Template& parsed) {
  std::string output;
  output_ = &output;
  const absl::StatusOr<Flow> flow = Exec(parsed.body);
  output_ = nullptr;
  if (flow.ok()) return output;
  if (runtime_.raised_by_template) return flow.status();
  return absl::Status(flow.status().code(), Concat("chat template, line ", error_line_, ": ", flow.status().message()));
}

void Evaluator::Assign(Scope& scope, std::string_view name, Value value) {
  for (auto& [existing, slot] : scope.variables) {
    if (existing != name) continue;
    slot = value;
    return;
  }
  scope.variables.emplace_back(name, value);
}

Value Evaluator::Lookup(std::string_view name) const {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    for (const auto& [existing, value] : scope->variables) {
      if (existing == name) return value;
    }
  }
  if (const Function* function = FindFunction(name)) return Value::Of(function);
  return Value::Undefined(name);
}

Scope* Evaluator::NewScope(Scope* parent) {
  Scope* scope = nullptr;
  if (free_scopes_.empty()) {
    scope = &scopes_.emplace_back();
  } else {
    scope = free_scopes_.back();
    free_scopes_.pop_back();
  }
  scope->parent = parent;
  return scope;
}

void Evaluator::Release(Scope* scope) {
  if (scope->captured) return;
  scope->variables.clear();
  free_scopes_.push_back(scope);
}

absl::StatusOr<Value> Evaluator::Eval(const Expr& expr) {
  const DepthGuard guard(runtime_.heap);
  absl::Status status = guard.status();
  if (status.ok()) status = runtime_.heap.Step();
  absl::StatusOr<Value> value =
      status.ok() ? std::visit([this](const auto& node) { return Apply(node); }, expr.node) : status;
  if (!value.ok() && error_line_ == 0) error_line_ = expr.line;
  return value;
}

absl::StatusOr<Value> Evaluator::EvalOptional(const ExprPtr& expr) {
  if (expr == nullptr) return Value::None();
  return Eval(*expr);
}

absl::StatusOr<Value> Evaluator::Apply(const Literal& node) {
  struct {
    Value operator()(std::monostate) const { return Value::None(); }
    Value operator()(bool value) const { return Value::Bool(value); }
    Value operator()(int64_t value) const { return Value::Int(value); }
    Value operator()(double value) const { return Value::Float(value); }
    Value operator()(const std::string& value) const { return Value::String(value); }
  } to_value;
  return std::visit(to_value, node.value);
}

absl::StatusOr<Value> Evaluator::Apply(const Name& node) { return Lookup(node.name); }

absl::StatusOr<Value> Evaluator::Apply(const ListDisplay& node) {
  std::vector<Value> items;
  items.reserve(node.items.size());
  for (const ExprPtr& expr : node.items) {
    BATON_ASSIGN_OR_RETURN(const Value item, Eval(*expr));
    items.push_back(item);
  }
  return runtime_.heap.NewSequence(std::move(items), node.is_tuple);
}

absl::StatusOr<Value> Evaluator::Apply(const DictDisplay& node) {
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [key_expr, value_expr] : node.entries) {
    BATON_ASSIGN_OR_RETURN(const Value key, Eval(*key_expr));
    BATON_ASSIGN_OR_RETURN(const Value value, Eval(*value_expr));
    if (!IsHashable(key)) {
      return absl::InvalidArgumentError(Concat("a key cannot be a ", TypeName(key.kind())));
    }
    bool exists = false;
    for (auto& entry : entries) {
      BATON_ASSIGN_OR_RETURN(exists, AreEqual(runtime_, entry.first, key));
      if (exists) {
        entry.second = value;
        break;
      }
    }
    if (!exists) entries.emplace_back(key, value);
  }
  return runtime_.heap.NewDict(std::move(entries));
}

absl::StatusOr<Value> Evaluator::Apply(const Attribute& node) {
  BATON_ASSIGN_OR_RETURN(const Value object, Eval(*node.object));
  return GetAttribute(runtime_, object, node.name);
}

absl::StatusOr<Value> Evaluator::Apply(const Item& node) {
  BATON_ASSIGN_OR_RETURN(const Value object, Eval(*node.object));
  BATON_ASSIGN_OR_RETURN(const Value key, Eval(*node.key));
  return GetItem(runtime_, object, key);
}

absl::StatusOr<Value> Evaluator::Apply(const Slice& node) {
  BATON_ASSIGN_OR_RETURN(const Value object, Eval(*node.object));
  BATON_ASSIGN_OR_RETURN(const Value start, EvalOptional(node.start));
  BATON_ASSIGN_OR_RETURN(const Value stop, EvalOptional(node.stop));
  BATON_ASSIGN_OR_RETURN(const Value step, EvalOptional(node.step));
  return GetSlice(runtime_, object, start, stop, step);
}

absl::StatusOr<Value> Evaluator::Apply(const Call& node) {
  BATON_ASSIGN_OR_RETURN(const Value callee, Eval(*node.callee));
  BATON_ASSIGN_OR_RETURN(const Arguments arguments, EvalArguments(node.arguments));
  return CallValue(callee, arguments);
}

absl::StatusOr<Value> Evaluator::Apply(const ApplyBuiltin& node) {
  BATON_ASSIGN_OR_RETURN(const Value input, Eval(*node.input));
  BATON_ASSIGN_OR_RETURN(const Arguments arguments, EvalArguments(node.arguments));
  return node.builtin(runtime_, input, arguments);
}

absl::StatusOr<Value> Evaluator::Apply(const Unary& node) {
  BATON_ASSIGN_OR_RETURN(const Value operand, Eval(*node.operand));
  if (node.op == UnaryOp::kNot) return Value::Bool(!IsTrue(operand));
  BATON_ASSIGN_OR_RETURN(const Value negated, Negate(operand));
  if (node.op == UnaryOp::kNegate) return negated;
  return operand.is(Kind::kBool) ? Value::Int(operand.AsInt()) : operand;
}

absl::StatusOr<Value> Evaluator::Apply(const Binary& node) {
  BATON_ASSIGN_OR_RETURN(const Value left, Eval(*node.left));
  if (node.op == BinaryOp::kAnd && !IsTrue(left)) return left;
  if (node.op == BinaryOp::kOr && IsTrue(left)) return left;
  BATON_ASSIGN_OR_RETURN(const Value right, Eval(*node.right));
  if (node.op == BinaryOp::kAnd || node.op == BinaryOp::kOr) return right;
  return Arithmetic(runtime_, node.op, left, right);
}

absl::StatusOr<Value> Evaluator::Apply(const Concatenation& node) {
  std::string text;
  for (const ExprPtr& expr : node.parts) {
    BATON_ASSIGN_OR_RETURN(const Value part, Eval(*expr));
    BATON_RETURN_IF_ERROR(AppendText(runtime_, part, text));
  }
  return runtime_.heap.NewString(std::move(text));
}

absl::StatusOr<Value> Evaluator::Apply(const Compare& node) {
  BATON_ASSIGN_OR_RETURN(Value left, Eval(*node.first));
  for (const auto& [op, expr] : node.rest) {
    BATON_ASSIGN_OR_RETURN(const Value right, Eval(*expr));
    BATON_ASSIGN_OR_RETURN(const bool holds, CompareValues(runtime_, op, left, right));
    if (!holds) return Value::Bool(false);
    left = right;
  }
  return Value::Bool(true);
}

absl::StatusOr<Value> Evaluator::Apply(const Conditional& node) {
  BATON_ASSIGN_OR_RETURN(const Value condition, Eval(*node.condition));
  if (IsTrue(condition)) return Eval(*node.if_true);
  if (node.if_false == nullptr) return Value::Undefined("the value of an 'if' without 'else'");
  return Eval(*node.if_false);
}

absl::StatusOr<Arguments> Evaluator::EvalArguments(const ArgumentExprs& exprs) {
  Arguments arguments;
  for (const ExprPtr& expr : exprs.positional) {
    BATON_ASSIGN_OR_RETURN(const Value value, Eval(*expr));
    arguments.positional.push_back(value);
  }
  for (const auto& [name, expr] : exprs.named) {
    BATON_ASSIGN_OR_RETURN(const Value value, Eval(*expr));
    arguments.named.emplace_back(name, value);
  }
  return arguments;
}

absl::StatusOr<Value> Evaluator::CallValue(const Value& callee, const Arguments& arguments) {
  switch (callee.kind()) {
    case Kind::kFunction: return callee.AsFunction().call(runtime_, Value(), arguments);
    case Kind::kMethod: {
      const BoundMethod& method = callee.AsMethod();
      const BuiltinFn call = FindMethod(method.receiver.kind(), method.name);
      if (call.is_known()) return call(runtime_, method.receiver, arguments);
      if (IsForbiddenMethodOf(method.receiver.kind(), method.name)) {
        return absl::InvalidArgumentError(Concat("access to attribute '", method.name, "' of '",
                                                 TypeName(method.receiver.kind()), "' object is unsafe."));
      }
      return absl::UnimplementedError(Concat("the method '", method.name, "' is not supported"));
    }
    case Kind::kMacro: return CallMacro(callee.AsMacro(), arguments);
    case Kind::kUndefined: return UndefinedError(callee);
    default: return absl::InvalidArgumentError(Concat("'", TypeName(callee.kind()), "' object is not callable"));
  }
}

}  // namespace baton::jinja
