// SPDX-License-Identifier: Apache-2.0
// Parses primary expressions: names, literals, parentheses, lists and dicts.
#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "common/status_macros.h"
#include "common/strings.h"
#include "text/jinja/make_expr.h"
#include "text/jinja/parser.h"

namespace baton::jinja {
namespace {

// Longer strings are not recorded as possible keys (Template::fields).
constexpr size_t kMaxFieldBytes = 64;

}  // namespace

absl::StatusOr<ExprPtr> Parser::ParsePrimary() {
  const int line = Peek().line;
  switch (Peek().kind) {
    case TokenKind::kName: return ParseNameOrConstant();
    case TokenKind::kInteger: return MakeExpr(line, 0, Literal{Take().integer});
    case TokenKind::kFloat: return MakeExpr(line, 0, Literal{Take().number});
    case TokenKind::kString: {
      std::string text = Take().text;
      while (Peek().kind == TokenKind::kString) text += Take().text;
      if (text.size() <= kMaxFieldBytes) fields_.insert(text);
      return MakeExpr(line, 0, Literal{std::move(text)});
    }
    default: break;
  }
  if (AtOperator("(")) return ParseParentheses();
  if (AtOperator("[")) return ParseListDisplay();
  if (AtOperator("{")) return ParseDictDisplay();
  return Unexpected("an expression");
}

absl::StatusOr<ExprPtr> Parser::ParseNameOrConstant() {
  Token token = Take();
  if (token.text == "true" || token.text == "True") return MakeExpr(token.line, 0, Literal{true});
  if (token.text == "false" || token.text == "False") return MakeExpr(token.line, 0, Literal{false});
  if (token.text == "none" || token.text == "None") return MakeExpr(token.line, 0, Literal{std::monostate()});
  if (token.text == "caller" || token.text == "varargs" || token.text == "kwargs" || token.text == "self" ||
      token.text == "super") {
    return Unsupported(token.line, Concat("'", token.text, "'"));
  }
  if (!local_names_.contains(token.text)) names_.insert(token.text);
  return MakeExpr(token.line, 0, Name{std::move(token.text)});
}

absl::StatusOr<ExprPtr> Parser::ParseParentheses() {
  const int line = Take().line;
  if (TakeOperator(")")) return MakeExpr(line, 0, ListDisplay{.items = {}, .is_tuple = true});
  BATON_ASSIGN_OR_RETURN(ExprPtr expr, ParseTupleOrExpression());
  BATON_RETURN_IF_ERROR(ExpectOperator(")"));
  return expr;
}

absl::StatusOr<ExprPtr> Parser::ParseListDisplay() {
  const int line = Take().line;
  ListDisplay list;
  while (!AtOperator("]")) {
    if (!list.items.empty()) BATON_RETURN_IF_ERROR(ExpectOperator(","));
    if (AtOperator("]")) break;
    BATON_ASSIGN_OR_RETURN(ExprPtr item, ParseExpression());
    list.items.push_back(std::move(item));
  }
  Take();
  const int depth = DepthOf(list.items);
  return MakeExpr(line, depth, std::move(list));
}

absl::StatusOr<ExprPtr> Parser::ParseDictDisplay() {
  const int line = Take().line;
  DictDisplay dict;
  int depth = 0;
  while (!AtOperator("}")) {
    if (!dict.entries.empty()) BATON_RETURN_IF_ERROR(ExpectOperator(","));
    if (AtOperator("}")) break;
    BATON_ASSIGN_OR_RETURN(ExprPtr key, ParseExpression());
    BATON_RETURN_IF_ERROR(ExpectOperator(":"));
    BATON_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
    depth = std::max({depth, DepthOf(key), DepthOf(value)});
    dict.entries.emplace_back(std::move(key), std::move(value));
  }
  Take();
  return MakeExpr(line, depth, std::move(dict));
}

}  // namespace baton::jinja
