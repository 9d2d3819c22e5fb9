// SPDX-License-Identifier: Apache-2.0
// Parses operators, from the lowest precedence (if-else, or) to the highest (unary signs).
#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "common/status_macros.h"
#include "text/jinja/make_expr.h"
#include "text/jinja/parser.h"

namespace baton::jinja {
namespace {

std::optional<BinaryOp> FindOp(std::initializer_list<std::pair<std::string_view, BinaryOp>> ops, const Token& token) {
  if (token.kind != TokenKind::kOperator) return std::nullopt;
  for (const auto& [spelling, op] : ops) {
    if (token.text == spelling) return op;
  }
  return std::nullopt;
}

std::optional<CompareOp> FindCompareOp(const Token& token) {
  if (token.kind != TokenKind::kOperator) return std::nullopt;
  if (token.text == "==") return CompareOp::kEqual;
  if (token.text == "!=") return CompareOp::kNotEqual;
  if (token.text == "<") return CompareOp::kLess;
  if (token.text == "<=") return CompareOp::kLessOrEqual;
  if (token.text == ">") return CompareOp::kGreater;
  if (token.text == ">=") return CompareOp::kGreaterOrEqual;
  return std::nullopt;
}

}  // namespace

absl::StatusOr<ExprPtr> Parser::ParseExpression(bool with_conditional) {
  const Nesting nesting(depth_);
  BATON_RETURN_IF_ERROR(CheckNesting());
  return with_conditional ? ParseConditional() : ParseOr();
}

absl::StatusOr<ExprPtr> Parser::ParseTupleOrExpression(bool with_conditional) {
  const int line = Peek().line;
  BATON_ASSIGN_OR_RETURN(ExprPtr first, ParseExpression(with_conditional));
  if (!AtOperator(",")) return first;
  ListDisplay tuple{.items = {}, .is_tuple = true};
  tuple.items.push_back(std::move(first));
  while (TakeOperator(",")) {
    const bool at_end =
        Peek().kind == TokenKind::kVariableEnd || Peek().kind == TokenKind::kBlockEnd || AtOperator(")");
    if (at_end) break;
    BATON_ASSIGN_OR_RETURN(ExprPtr item, ParseExpression(with_conditional));
    tuple.items.push_back(std::move(item));
  }
  const int depth = DepthOf(tuple.items);
  return MakeExpr(line, depth, std::move(tuple));
}

absl::StatusOr<ExprPtr> Parser::ParseConditional() {
  const int line = Peek().line;
  BATON_ASSIGN_OR_RETURN(ExprPtr expr, ParseOr());
  while (TakeName("if")) {
    BATON_ASSIGN_OR_RETURN(ExprPtr condition, ParseOr());
    ExprPtr otherwise;
    if (TakeName("else")) {
      BATON_ASSIGN_OR_RETURN(otherwise, ParseExpression());
    }
    const int depth = std::max({DepthOf(condition), DepthOf(expr), DepthOf(otherwise)});
    BATON_ASSIGN_OR_RETURN(
        expr, MakeExpr(line, depth, Conditional{std::move(condition), std::move(expr), std::move(otherwise)}));
  }
  return expr;
}

absl::StatusOr<ExprPtr> Parser::ParseOr() {
  const int line = Peek().line;
  BATON_ASSIGN_OR_RETURN(ExprPtr left, ParseAnd());
  while (TakeName("or")) {
    BATON_ASSIGN_OR_RETURN(ExprPtr right, ParseAnd());
    const int depth = std::max(DepthOf(left), DepthOf(right));
    BATON_ASSIGN_OR_RETURN(left, MakeExpr(line, depth, Binary{BinaryOp::kOr, std::move(left), std::move(right)}));
  }
  return left;
}

absl::StatusOr<ExprPtr> Parser::ParseAnd() {
  const int line = Peek().line;
  BATON_ASSIGN_OR_RETURN(ExprPtr left, ParseNot());
  while (TakeName("and")) {
    BATON_ASSIGN_OR_RETURN(ExprPtr right, ParseNot());
    const int depth = std::max(DepthOf(left), DepthOf(right));
    BATON_ASSIGN_OR_RETURN(left, MakeExpr(line, depth, Binary{BinaryOp::kAnd, std::move(left), std::move(right)}));
  }
  return left;
}

absl::StatusOr<ExprPtr> Parser::ParseNot() {
  if (!AtName("not")) return ParseCompare();
  const Nesting nesting(depth_);
  BATON_RETURN_IF_ERROR(CheckNesting());
  const int line = Take().line;
  BATON_ASSIGN_OR_RETURN(ExprPtr operand, ParseNot());
  const int depth = DepthOf(operand);
  return MakeExpr(line, depth, Unary{UnaryOp::kNot, std::move(operand)});
}

absl::StatusOr<ExprPtr> Parser::ParseCompare() {
  const int line = Peek().line;
  Compare compare;
  BATON_ASSIGN_OR_RETURN(compare.first, ParseSum());
  int depth = DepthOf(compare.first);
  while (true) {
    std::optional<CompareOp> op = FindCompareOp(Peek());
    if (AtName("in")) op = CompareOp::kIn;
    if (AtName("not") && Peek(1).kind == TokenKind::kName && Peek(1).text == "in") {
      Take();
      op = CompareOp::kNotIn;
    }
    if (!op) break;
    Take();
    BATON_ASSIGN_OR_RETURN(ExprPtr right, ParseSum());
    depth = std::max(depth, DepthOf(right));
    compare.rest.emplace_back(*op, std::move(right));
  }
  if (compare.rest.empty()) return std::move(compare.first);
  return MakeExpr(line, depth, std::move(compare));
}

absl::StatusOr<ExprPtr> Parser::ParseSum() {
  const int line = Peek().line;
  BATON_ASSIGN_OR_RETURN(ExprPtr left, ParseConcat());
  while (const auto op = FindOp({{"+", BinaryOp::kAdd}, {"-", BinaryOp::kSubtract}}, Peek())) {
    Take();
    BATON_ASSIGN_OR_RETURN(ExprPtr right, ParseConcat());
    const int depth = std::max(DepthOf(left), DepthOf(right));
    BATON_ASSIGN_OR_RETURN(left, MakeExpr(line, depth, Binary{*op, std::move(left), std::move(right)}));
  }
  return left;
}

absl::StatusOr<ExprPtr> Parser::ParseConcat() {
  const int line = Peek().line;
  BATON_ASSIGN_OR_RETURN(ExprPtr first, ParseProduct());
  if (!AtOperator("~")) return first;
  Concatenation concat;
  concat.parts.push_back(std::move(first));
  while (TakeOperator("~")) {
    BATON_ASSIGN_OR_RETURN(ExprPtr part, ParseProduct());
    concat.parts.push_back(std::move(part));
  }
  const int depth = DepthOf(concat.parts);
  return MakeExpr(line, depth, std::move(concat));
}

absl::StatusOr<ExprPtr> Parser::ParseProduct() {
  const int line = Peek().line;
  BATON_ASSIGN_OR_RETURN(ExprPtr left, ParsePower());
  while (const auto op = FindOp({{"*", BinaryOp::kMultiply},
                                 {"/", BinaryOp::kDivide},
                                 {"//", BinaryOp::kFloorDivide},
                                 {"%", BinaryOp::kModulo}},
                                Peek())) {
    Take();
    BATON_ASSIGN_OR_RETURN(ExprPtr right, ParsePower());
    const int depth = std::max(DepthOf(left), DepthOf(right));
    BATON_ASSIGN_OR_RETURN(left, MakeExpr(line, depth, Binary{*op, std::move(left), std::move(right)}));
  }
  return left;
}

absl::StatusOr<ExprPtr> Parser::ParsePower() {
  const int line = Peek().line;
  BATON_ASSIGN_OR_RETURN(ExprPtr left, ParseUnary());
  while (TakeOperator("**")) {  // left-associative, unlike Python
    BATON_ASSIGN_OR_RETURN(ExprPtr right, ParseUnary());
    const int depth = std::max(DepthOf(left), DepthOf(right));
    BATON_ASSIGN_OR_RETURN(left, MakeExpr(line, depth, Binary{BinaryOp::kPower, std::move(left), std::move(right)}));
  }
  return left;
}

// Precedence: -x.y is -(x.y), and -x|f is (-x)|f.
absl::StatusOr<ExprPtr> Parser::ParseUnary(bool with_filters) {
  const Nesting nesting(depth_);
  BATON_RETURN_IF_ERROR(CheckNesting());
  const int line = Peek().line;
  ExprPtr expr;
  if (AtOperator("-") || AtOperator("+")) {
    const UnaryOp op = Take().text == "-" ? UnaryOp::kNegate : UnaryOp::kPlus;
    BATON_ASSIGN_OR_RETURN(ExprPtr operand, ParseUnary(/*with_filters=*/false));
    const int depth = DepthOf(operand);
    BATON_ASSIGN_OR_RETURN(expr, MakeExpr(line, depth, Unary{op, std::move(operand)}));
  } else {
    BATON_ASSIGN_OR_RETURN(expr, ParsePrimary());
  }
  BATON_ASSIGN_OR_RETURN(expr, ParsePostfix(std::move(expr)));
  if (with_filters) return ParseFiltersAndTests(std::move(expr));
  return expr;
}

}  // namespace baton::jinja
