// Runs a parsed template.
//
// Not thread-safe: one for each render. Expressions are in evaluator.cc, statements in statements.cc.
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

// The variables of a template, an iteration of a loop or a call of a macro, inside those of what encloses it.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string_view, Value>> variables;
  bool captured = false;  // by a macro that is defined in it, or further in
};

struct Macro {
  const MacroDefinition* definition;
  Scope* scope;  // in which it was defined
};

class Evaluator {
 public:
  // `runtime` must outlive this, and the template everything that either of them made.
  explicit Evaluator(Runtime& runtime);
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  void SetVariable(std::string_view name, Value value) { Assign(*scope_, name, value); }

  // What the template puts out. An error names the line, unless the template raised it.
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
  absl::StatusOr<Value> Apply(const ApplyFilter& node);
  absl::StatusOr<Value> Apply(const ApplyTest& node);
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
  absl::Status AssignTargets(const For& node, Scope& scope, const Value& item);
  absl::Status AssignTarget(const Target& target, const Value& value);
  // What `block` puts out, as a string.
  absl::StatusOr<Value> Capture(const Block& block);

  Runtime& runtime_;
  std::string* output_ = nullptr;
  std::deque<Scope> scopes_;  // never move
  std::vector<Scope*> free_scopes_;
  std::deque<Macro> macros_;
  Scope* scope_;
  int error_line_ = 0;  // where the error that is on its way out arose
};

// The values in `value`, a sequence of `count`; INVALID_ARGUMENT otherwise.
absl::StatusOr<std::vector<Value>> Unpack(Runtime& runtime, const Value& value, size_t count);

}  // namespace baton::jinja
