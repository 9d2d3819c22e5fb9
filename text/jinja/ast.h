// SPDX-License-Identifier: Apache-2.0
// The syntax tree of a template. The parser binds filters and tests, so an unsupported filter is a parse error. The
// evaluator looks up variables.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/runtime.h"

namespace baton::jinja {

struct Expr;
struct Statement;
using ExprPtr = std::unique_ptr<Expr>;  // null where an optional part is absent
using Block = std::vector<std::unique_ptr<Statement>>;

// --- Expressions ---

struct Literal {
  std::variant<std::monostate, bool, int64_t, double, std::string> value;  // monostate: none
};

struct Name {
  std::string name;
};

struct ListDisplay {
  std::vector<ExprPtr> items;
  bool is_tuple = false;
};

struct DictDisplay {
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};

struct Attribute {  // object.name
  ExprPtr object;
  std::string name;
};

struct Item {  // object[key]
  ExprPtr object;
  ExprPtr key;
};

struct Slice {  // object[start:stop:step]
  ExprPtr object;
  ExprPtr start;
  ExprPtr stop;
  ExprPtr step;
};

struct ArgumentExprs {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
};

struct Call {
  ExprPtr callee;
  ArgumentExprs arguments;
};

struct ApplyBuiltin {  // input|filter(arguments), or: input is test(arguments)
  ExprPtr input;
  BuiltinFn builtin;
  ArgumentExprs arguments;
};

enum class UnaryOp { kNot, kNegate, kPlus };

struct Unary {
  UnaryOp op;
  ExprPtr operand;
};

enum class BinaryOp { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower, kAnd, kOr };

struct Binary {
  BinaryOp op;
  ExprPtr left;
  ExprPtr right;
};

struct Concatenation {  // a ~ b ~ c
  std::vector<ExprPtr> parts;
};

enum class CompareOp { kEqual, kNotEqual, kLess, kLessOrEqual, kGreater, kGreaterOrEqual, kIn, kNotIn };

struct Compare {  // a < b <= c: a < b and b <= c
  ExprPtr first;
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
};

struct Conditional {  // if_true if condition else if_false
  ExprPtr condition;
  ExprPtr if_true;
  ExprPtr if_false;
};

struct Expr {
  int line = 0;
  int depth = 1;  // of the subtree; bounded by MakeExpr
  std::variant<Literal, Name, ListDisplay, DictDisplay, Attribute, Item, Slice, Call, ApplyBuiltin, Unary, Binary,
               Concatenation, Compare, Conditional>
      node;
};

// --- Statements ---

struct Text {
  std::string text;
};

struct Output {  // {{ value }}
  ExprPtr value;
};

struct If {
  std::vector<std::pair<ExprPtr, Block>> branches;
  Block otherwise;
};

// The target of an assignment: a variable, or an attribute of a namespace.
struct Target {
  std::string name;
  std::string attribute = {};  // empty for a variable
};

struct For {
  std::vector<Target> targets;  // variables
  bool unpacks = false;         // each item is a sequence with one value per target
  ExprPtr items;
  ExprPtr condition;  // "for x in items if condition"
  Block body;
  Block otherwise;  // runs when there are no items
};

struct Set {
  std::vector<Target> targets;
  bool unpacks = false;
  ExprPtr value;
};

struct SetBlock {  // {% set x | filter %} ... {% endset %}
  Target target;
  Block body;
  std::vector<ApplyBuiltin> filters;  // applied to the output of the body; `input` is null
};

struct MacroDefinition {
  struct Parameter {
    std::string name;
    ExprPtr default_value;
  };
  std::string name;
  std::vector<Parameter> parameters;
  Block body;
};

struct Generation {  // {% generation %}: marks the model's text for training; no effect here
  Block body;
};

enum class LoopControl { kBreak, kContinue };

struct Statement {
  using Node = std::variant<Text, Output, If, For, Set, SetBlock, MacroDefinition, Generation, LoopControl>;
  int line = 0;
  Node node;
};

struct Template {
  Block body;
  using Names = std::set<std::string, std::less<>>;
  Names variables;  // all variables read, except functions and the variables of loops and macros
  Names fields;     // attribute names, and short string literals, which may be keys
};

}  // namespace baton::jinja
