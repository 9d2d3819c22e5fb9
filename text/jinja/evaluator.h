// SPDX-License-Identifier: Apache-2.0
// An Evaluator runs a parsed template once. evaluator.cc evaluates expressions, statements.cc runs statements.
//
// Not thread-safe: each render has its own Evaluator.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"

namespace baton::jinja {

// The variables of a template, of one loop iteration or of one macro call.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string_view, Value>> variables;
  bool captured = false;  // a macro was defined in this scope or in an inner scope, so the scope must not be reused
};

struct Macro {
  const MacroDefinition* definition;
  Scope* scope;  // the scope of the definition
};

class Evaluator {
 public:
  // `runtime` must outlive the Evaluator. The template must outlive both, because values point into it.
  explicit Evaluator(Runtime& runtime);
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  void SetVariable(std::string_view name, Value value) { Assign(*scope_, name, value); }

  // Returns the output of the template. Errors name the line, except errors from raise_exception.
  absl::StatusOr<std::string> Run(const Template& parsed);

 private:
  enum class Flow { kNext, kBreak, kContinue };
  class ScopeGuard;

  static void Assign(Scope& scope, std::string_view name, Value value);
  Value Lookup(std::string_view name) const;
  Scope* NewScope(Scope* parent);
  void Release(Scope* scope);

  absl::StatusOr<Value> Eval(const Expr& expr);
  absl::StatusOr<Value> EvalOptional(const ExprPtr& expr);  // None when absent
  absl::StatusOr<Value> Apply(const Literal& node);
  absl::StatusOr<Value> Apply(const Name& node);
  absl::StatusOr<Value> Apply(const ListDisplay& node);
  absl::StatusOr<Value> Apply(const DictDisplay& node);
  absl::StatusOr<Value> Apply(const Attribute& node);
  absl::StatusOr<Value> Apply(const Item& node);
  absl::StatusOr<Value> Apply(const Slice& node);
  absl::StatusOr<Value> Apply(const Call& node);
  absl::StatusOr<Value> Apply(const ApplyBuiltin& node);
  absl::StatusOr<Value> Apply(const Unary& node);
  absl::StatusOr<Value> Apply(const Binary& node);
  absl::StatusOr<Value> Apply(const Concatenation& node);
  absl::StatusOr<Value> Apply(const Compare& node);
  absl::StatusOr<Value> Apply(const Conditional& node);
  absl::StatusOr<Arguments> EvalArguments(const ArgumentExprs& exprs);
  absl::StatusOr<Value> CallValue(const Value& callee, const Arguments& arguments);
  absl::StatusOr<Value> CallMacro(const Macro& macro, const Arguments& arguments);

  absl::StatusOr<Flow> Exec(const Block& block);
  absl::StatusOr<Flow> Exec(const Text& node);
  absl::StatusOr<Flow> Exec(const Output& node);
  absl::StatusOr<Flow> Exec(const If& node);
  absl::StatusOr<Flow> Exec(const For& node);
  absl::StatusOr<Flow> Exec(const Set& node);
  absl::StatusOr<Flow> Exec(const SetBlock& node);
  absl::StatusOr<Flow> Exec(const MacroDefinition& node);
  absl::StatusOr<Flow> Exec(const Generation& node);
  absl::StatusOr<Flow> Exec(const LoopControl& node);
  absl::StatusOr<std::vector<Value>> LoopItems(const For& node);
  absl::Status AssignTargets(const std::vector<Target>& targets, bool unpacks, const Value& value);
  absl::Status AssignTarget(const Target& target, const Value& value);
  // Returns the output of `block`.
  absl::StatusOr<Value> Capture(const Block& block);

  Runtime& runtime_;
  std::string* output_ = nullptr;
  std::deque<Scope> scopes_;  // a deque, because scopes must not move
  std::vector<Scope*> free_scopes_;
  std::deque<Macro> macros_;
  Scope* scope_;
  int error_line_ = 0;  // line of the first error; 0 without error
};

}  // namespace baton::jinja
