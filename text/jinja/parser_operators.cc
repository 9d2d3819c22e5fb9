// SPDX-License-Identifier: Apache-2.0
// Parses operators, from the lowest precedence (if-else, or) to the highest (unary signs).
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "text/jinja/make_expr.h"
#include "text/jinja/parser.h"

namespace baton::jinja {

template <typename Op>
std::optional<Op> Parser::FindOp(std::initializer_list<std::pair<std::string_view, Op>> operators) const {
  for (const auto& [spelling, op] : operators) {
    if (At(spelling)) return op;
  }
  return std::nullopt;
}

absl::StatusOr<ExprPtr> Parser::ParseExpression(bool with_conditional) {
  const Nesting nesting(depth_);
  BATON_RETURN_IF_ERROR(CheckNesting());
  return with_conditional ? ParseConditional() : ParseOr();
}

absl::StatusOr<ExprPtr> Parser::ParseTupleOrExpression(bool with_conditional) {
  const int line = Peek().line;
  BATON_ASSIGN_OR_RETURN(ExprPtr first, ParseExpression(with_conditional));
  if (!At(",")) return first;
  std::vector<ExprPtr> items;
  items.push_back(std::move(first));
  while (TakeIf(",")) {
    const bool at_end = Peek().kind == TokenKind::kVariableEnd || Peek().kind == TokenKind::kBlockEnd || At(")");
    if (at_end) break;
    BATON_ASSIGN_OR_RETURN(ExprPtr item, ParseExpression(with_conditional));
    items.push_back(std::move(item));
  }
  return MakeExpr<ListDisplay>(line, std::move(items), /*is_tuple=*/true);
}

absl::StatusOr<ExprPtr> Parser::ParseConditional() {
  const int line = Peek().line;
  BATON_ASSIGN_OR_RETURN(ExprPtr expr, ParseOr());
  while (TakeIf("if")) {
    BATON_ASSIGN_OR_RETURN(ExprPtr condition, ParseOr());
    ExprPtr otherwise;
    if (TakeIf("else")) {
      BATON_ASSIGN_OR_RETURN(otherwise, ParseExpression());
    }
    BATON_ASSIGN_OR_RETURN(expr,
                           MakeExpr<Conditional>(line, std::move(condition), std::move(expr), std::move(otherwise)));
  }
  return expr;
}

absl::StatusOr<ExprPtr> Parser::ParseLeft(std::initializer_list<std::pair<std::string_view, BinaryOp>> operators,
                                          absl::StatusOr<ExprPtr> (Parser::*parse_operand)()) {
  const int line = Peek().line;
  BATON_ASSIGN_OR_RETURN(ExprPtr left, (this->*parse_operand)());
  while (const auto op = FindOp(operators)) {
    Take();
    BATON_ASSIGN_OR_RETURN(ExprPtr right, (this->*parse_operand)());
    BATON_ASSIGN_OR_RETURN(left, MakeExpr<Binary>(line, *op, std::move(left), std::move(right)));
  }
  return left;
}

absl::StatusOr<ExprPtr> Parser::ParseOr() { return ParseLeft({{"or", BinaryOp::kOr}}, &Parser::ParseAnd); }

absl::StatusOr<ExprPtr> Parser::ParseAnd() { return ParseLeft({{"and", BinaryOp::kAnd}}, &Parser::ParseNot); }

absl::StatusOr<ExprPtr> Parser::ParseNot() {
  if (!At("not")) return ParseCompare();
  const Nesting nesting(depth_);
  BATON_RETURN_IF_ERROR(CheckNesting());
  const int line = Take().line;
  BATON_ASSIGN_OR_RETURN(ExprPtr operand, ParseNot());
  return MakeExpr<Unary>(line, UnaryOp::kNot, std::move(operand));
}

absl::StatusOr<ExprPtr> Parser::ParseCompare() {
  const int line = Peek().line;
  BATON_ASSIGN_OR_RETURN(ExprPtr first, ParseSum());
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
  while (true) {
    std::optional<CompareOp> op = FindOp<CompareOp>({{"==", CompareOp::kEqual},
                                                     {"!=", CompareOp::kNotEqual},
                                                     {"<", CompareOp::kLess},
                                                     {"<=", CompareOp::kLessOrEqual},
                                                     {">", CompareOp::kGreater},
                                                     {">=", CompareOp::kGreaterOrEqual},
                                                     {"in", CompareOp::kIn}});
    if (At("not") && Peek(1).kind == TokenKind::kName && Peek(1).text == "in") {
      Take();
      op = CompareOp::kNotIn;
    }
    if (!op) break;
    Take();
    BATON_ASSIGN_OR_RETURN(ExprPtr right, ParseSum());
    rest.emplace_back(*op, std::move(right));
  }
  if (rest.empty()) return first;
  return MakeExpr<Compare>(line, std::move(first), std::move(rest));
}

absl::StatusOr<ExprPtr> Parser::ParseSum() {
  return ParseLeft({{"+", BinaryOp::kAdd}, {"-", BinaryOp::kSubtract}}, &Parser::ParseConcat);
}

absl::StatusOr<ExprPtr> Parser::ParseConcat() {
  const int line = Peek().line;
  BATON_ASSIGN_OR_RETURN(ExprPtr first, ParseProduct());
  if (!At("~")) return first;
  std::vector<ExprPtr> parts;
  parts.push_back(std::move(first));
  while (TakeIf("~")) {
    BATON_ASSIGN_OR_RETURN(ExprPtr part, ParseProduct());
    parts.push_back(std::move(part));
  }
  return MakeExpr<Concatenation>(line, std::move(parts));
}

absl::StatusOr<ExprPtr> Parser::ParseProduct() {
  return ParseLeft(
      {{"*", BinaryOp::kMultiply}, {"/", BinaryOp::kDivide}, {"//", BinaryOp::kFloorDivide}, {"%", BinaryOp::kModulo}},
      &Parser::ParsePower);
}

// Left-associative, unlike Python.
absl::StatusOr<ExprPtr> Parser::ParsePower() { return ParseLeft({{"**", BinaryOp::kPower}}, &Parser::ParseUnary); }

// Precedence: -x.y is -(x.y), and -x|f is (-x)|f.
absl::StatusOr<ExprPtr> Parser::ParseUnary(bool with_filters) {
  const Nesting nesting(depth_);
  BATON_RETURN_IF_ERROR(CheckNesting());
  const int line = Peek().line;
  ExprPtr expr;
  if (At("-") || At("+")) {
    const UnaryOp op = Take().text == "-" ? UnaryOp::kNegate : UnaryOp::kPlus;
    BATON_ASSIGN_OR_RETURN(ExprPtr operand, ParseUnary(/*with_filters=*/false));
    BATON_ASSIGN_OR_RETURN(expr, MakeExpr<Unary>(line, op, std::move(operand)));
  } else {
    BATON_ASSIGN_OR_RETURN(expr, ParsePrimary());
  }
  BATON_ASSIGN_OR_RETURN(expr, ParsePostfix(std::move(expr)));
  if (with_filters) return ParseFiltersAndTests(std::move(expr));
  return expr;
}

}  // namespace baton::jinja
