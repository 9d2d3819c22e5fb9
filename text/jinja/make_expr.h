// SPDX-License-Identifier: Apache-2.0
// Builds expression nodes for the parser and bounds the depth of the tree.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/strings.h"
#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace baton::jinja {

// Bounds the recursion over a tree. A chain such as a + b + c + ... is deep without brackets.
inline constexpr int kMaxExpressionDepth = 200;

// Depth of the deepest operand; 0 for an absent operand.
inline int DepthOf(const ExprPtr& expr) { return expr == nullptr ? 0 : expr->depth; }

inline int DepthOf(const std::vector<ExprPtr>& exprs) {
  int depth = 0;
  for (const ExprPtr& expr : exprs) depth = std::max(depth, DepthOf(expr));
  return depth;
}

inline int DepthOf(const ArgumentExprs& arguments) {
  int depth = DepthOf(arguments.positional);
  for (const auto& [name, value] : arguments.named) depth = std::max(depth, DepthOf(value));
  return depth;
}

// Returns an expression whose deepest operand has depth `depth_below`. INVALID_ARGUMENT when the tree becomes too deep.
template <typename Node>
absl::StatusOr<ExprPtr> MakeExpr(int line, int depth_below, Node node) {
  if (depth_below >= kMaxExpressionDepth) {
    return SyntaxError(line, Concat("expected an expression of at most ", kMaxExpressionDepth, " levels"));
  }
  auto expr = std::make_unique<Expr>();
  expr->line = line;
  expr->depth = depth_below + 1;
  expr->node = std::move(node);
  return expr;
}

}  // namespace baton::jinja
