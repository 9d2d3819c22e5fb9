// SPDX-License-Identifier: Apache-2.0
// Implements the statements of Evaluator.
#include <algorithm>
#include <utility>

#include "common/status_macros.h"
#include "common/strings.h"
#include "text/jinja/evaluator.h"
#include "text/jinja/operators.h"

namespace baton::jinja {

// Enters a new scope; the destructor returns to the previous scope.
class Evaluator::ScopeGuard {
 public:
  ScopeGuard(Evaluator& evaluator, Scope* parent)
      : evaluator_(evaluator), outer_(std::exchange(evaluator.scope_, evaluator.NewScope(parent))) {}
  ~ScopeGuard() { evaluator_.Release(std::exchange(evaluator_.scope_, outer_)); }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  Evaluator& evaluator_;
  Scope* const outer_;
};

absl::StatusOr<Evaluator::Flow> Evaluator::Exec(const Block& block) {
  const DepthGuard guard(runtime_.heap);
  BATON_RETURN_IF_ERROR(guard.status());
  for (const auto& statement : block) {
    absl::Status status = runtime_.heap.Step();
    absl::StatusOr<Flow> flow =
        status.ok() ? std::visit([this](const auto& node) { return Exec(node); }, statement->node) : status;
    if (!flow.ok() && error_line_ == 0) error_line_ = statement->line;
    if (!flow.ok() || *flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

absl::StatusOr<Evaluator::Flow> Evaluator::Exec(const Text& node) {
  BATON_RETURN_IF_ERROR(runtime_.heap.Reserve(node.text.size()));
  *output_ += node.text;
  return Flow::kNext;
}

absl::StatusOr<Evaluator::Flow> Evaluator::Exec(const Output& node) {
  BATON_ASSIGN_OR_RETURN(const Value value, Eval(*node.value));
  BATON_RETURN_IF_ERROR(AppendText(runtime_, value, *output_));
  return Flow::kNext;
}

absl::StatusOr<Evaluator::Flow> Evaluator::Exec(const If& node) {
  for (const auto& [condition_expr, body] : node.branches) {
    BATON_ASSIGN_OR_RETURN(const Value condition, Eval(*condition_expr));
    if (IsTrue(condition)) return Exec(body);
  }
  return Exec(node.otherwise);
}

absl::StatusOr<std::vector<Value>> Evaluator::LoopItems(const For& node) {
  BATON_ASSIGN_OR_RETURN(const Value iterable, Eval(*node.items));
  BATON_ASSIGN_OR_RETURN(std::vector<Value> items, Items(runtime_, iterable));
  if (node.condition == nullptr) return items;
  std::vector<Value> chosen;
  for (const Value& item : items) {
    const ScopeGuard scope(*this, scope_);
    BATON_RETURN_IF_ERROR(AssignTargets(node.targets, node.unpacks, item));
    BATON_ASSIGN_OR_RETURN(const Value condition, Eval(*node.condition));
    if (IsTrue(condition)) chosen.push_back(item);
  }
  return chosen;
}

absl::StatusOr<Evaluator::Flow> Evaluator::Exec(const For& node) {
  BATON_ASSIGN_OR_RETURN(std::vector<Value> items, LoopItems(node));
  if (items.empty()) return Exec(node.otherwise);
  BATON_ASSIGN_OR_RETURN(Loop * loop, runtime_.heap.NewLoop(std::move(items)));
  for (loop->index0 = 0; loop->index0 < loop->items.size(); ++loop->index0) {
    const ScopeGuard scope(*this, scope_);
    Assign(*scope_, "loop", Value::Of(loop));
    BATON_RETURN_IF_ERROR(AssignTargets(node.targets, node.unpacks, loop->items[loop->index0]));
    BATON_ASSIGN_OR_RETURN(const Flow flow, Exec(node.body));
    if (flow == Flow::kBreak) break;
  }
  return Flow::kNext;
}

absl::Status Evaluator::AssignTarget(const Target& target, const Value& value) {
  if (target.attribute.empty()) {
    Assign(*scope_, target.name, value);
    return absl::OkStatus();
  }
  const Value object = Lookup(target.name);
  if (!object.is(Kind::kNamespace)) {
    return absl::InvalidArgumentError(
        Concat("cannot set an attribute of '", target.name, "', which is not a namespace"));
  }
  // Heap::NewNamespace made the object as non-const.
  auto& entries = const_cast<Dict&>(object.AsDict()).entries;
  for (auto& [key, slot] : entries) {
    if (key.AsString() != target.attribute) continue;
    slot = value;
    return absl::OkStatus();
  }
  entries.emplace_back(Value::String(target.attribute), value);
  return absl::OkStatus();
}

absl::Status Evaluator::AssignTargets(const std::vector<Target>& targets, bool unpacks, const Value& value) {
  if (!unpacks) return AssignTarget(targets[0], value);
  BATON_ASSIGN_OR_RETURN(const std::vector<Value> values, Items(runtime_, value));
  if (values.size() != targets.size()) {
    return absl::InvalidArgumentError(Concat("expected ", targets.size(), " values to unpack, got ", values.size()));
  }
  for (size_t i = 0; i < values.size(); ++i) BATON_RETURN_IF_ERROR(AssignTarget(targets[i], values[i]));
  return absl::OkStatus();
}

absl::StatusOr<Evaluator::Flow> Evaluator::Exec(const Set& node) {
  BATON_ASSIGN_OR_RETURN(const Value value, Eval(*node.value));
  BATON_RETURN_IF_ERROR(AssignTargets(node.targets, node.unpacks, value));
  return Flow::kNext;
}

absl::StatusOr<Value> Evaluator::Capture(const Block& block) {
  std::string text;
  std::string* const outer = std::exchange(output_, &text);
  const absl::StatusOr<Flow> flow = Exec(block);
  output_ = outer;
  BATON_RETURN_IF_ERROR(flow.status());
  return runtime_.heap.NewString(std::move(text));
}

absl::StatusOr<Evaluator::Flow> Evaluator::Exec(const SetBlock& node) {
  Value value;
  {
    const ScopeGuard scope(*this, scope_);
    BATON_ASSIGN_OR_RETURN(value, Capture(node.body));
  }
  for (const ApplyBuiltin& filter : node.filters) {
    BATON_ASSIGN_OR_RETURN(const Arguments arguments, EvalArguments(filter.arguments));
    BATON_ASSIGN_OR_RETURN(value, filter.builtin(runtime_, value, arguments));
  }
  BATON_RETURN_IF_ERROR(AssignTarget(node.target, value));
  return Flow::kNext;
}

absl::StatusOr<Evaluator::Flow> Evaluator::Exec(const MacroDefinition& node) {
  BATON_RETURN_IF_ERROR(runtime_.heap.Reserve(sizeof(Macro)));
  macros_.push_back({&node, scope_});
  for (Scope* scope = scope_; scope != nullptr && !scope->captured; scope = scope->parent) {
    BATON_RETURN_IF_ERROR(runtime_.heap.Reserve(sizeof(Scope)));
    scope->captured = true;
  }
  Assign(*scope_, node.name, Value::Of(&macros_.back()));
  return Flow::kNext;
}

absl::StatusOr<Value> Evaluator::CallMacro(const Macro& macro, const Arguments& arguments) {
  const DepthGuard guard(runtime_.heap);
  BATON_RETURN_IF_ERROR(guard.status());
  const auto& parameters = macro.definition->parameters;
  const auto error = [&](std::string_view what) {
    return absl::InvalidArgumentError(Concat("macro '", macro.definition->name, "': ", what));
  };
  if (arguments.positional.size() > parameters.size()) {
    return error(Concat("takes at most ", parameters.size(), " arguments"));
  }
  const ScopeGuard scope(*this, macro.scope);
  for (const auto& [name, value] : arguments.named) {
    const auto parameter =
        std::find_if(parameters.begin(), parameters.end(), [&](const auto& p) { return p.name == name; });
    if (parameter == parameters.end()) return error(Concat("unexpected argument '", name, "'"));
    if (parameter < parameters.begin() + static_cast<std::ptrdiff_t>(arguments.positional.size())) {
      return error(Concat("argument '", name, "' given twice"));
    }
    Assign(*scope_, name, value);
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& parameter = parameters[i];
    const auto is_given = [&](const auto& argument) { return argument.first == parameter.name; };
    if (i < arguments.positional.size()) {
      Assign(*scope_, parameter.name, arguments.positional[i]);
    } else if (std::any_of(arguments.named.begin(), arguments.named.end(), is_given)) {
      continue;
    } else if (parameter.default_value != nullptr) {
      // A default may use the parameters before it, so evaluate inside the macro's scope.
      BATON_ASSIGN_OR_RETURN(const Value value, Eval(*parameter.default_value));
      Assign(*scope_, parameter.name, value);
    } else {
      Assign(*scope_, parameter.name, Value::Undefined(parameter.name));
    }
  }
  return Capture(macro.definition->body);
}

absl::StatusOr<Evaluator::Flow> Evaluator::Exec(const Generation& node) {
  const ScopeGuard scope(*this, scope_);  // in Hugging Face's implementation a call block, which has its own scope
  return Exec(node.body);
}

absl::StatusOr<Evaluator::Flow> Evaluator::Exec(const LoopControl& node) {
  return node == LoopControl::kBreak ? Flow::kBreak : Flow::kContinue;
}

}  // namespace baton::jinja
