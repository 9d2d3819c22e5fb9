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

// Depth of the deepest expression in a part of a node: 0 for an absent expression, and for a name or an operator.
template <typename Other>
int DepthOf(const Other& /*part*/) {
  return 0;
}

inline int DepthOf(const ExprPtr& expr) { return expr == nullptr ? 0 : expr->depth; }

template <typename First>
int DepthOf(const std::pair<First, ExprPtr>& pair) {
  return std::max(DepthOf(pair.first), DepthOf(pair.second));
}

template <typename Part>
int DepthOf(const std::vector<Part>& parts) {
  int depth = 0;
  for (const Part& part : parts) depth = std::max(depth, DepthOf(part));
  return depth;
}

inline int DepthOf(const ArgumentExprs& arguments) {
  return std::max(DepthOf(arguments.positional), DepthOf(arguments.named));
}

// Returns the expression Node{parts...}. INVALID_ARGUMENT when the tree becomes too deep.
template <typename Node, typename... Parts>
absl::StatusOr<ExprPtr> MakeExpr(int line, Parts... parts) {
  const int depth = 1 + std::max({DepthOf(parts)...});
  if (depth > kMaxExpressionDepth) {
    return SyntaxError(line, Concat("expected an expression of at most ", kMaxExpressionDepth, " levels"));
  }
  return std::make_unique<Expr>(Expr{.line = line, .depth = depth, .node = Node{std::move(parts)...}});
}

}  // namespace baton::jinja
