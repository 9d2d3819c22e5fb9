// SPDX-License-Identifier: Apache-2.0
// Parses primary expressions: names, literals, parentheses, lists and dicts.
#include <string>
#include <utility>
#include <variant>
#include <vector>

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
    case TokenKind::kInteger: return MakeExpr<Literal>(line, Take().integer);
    case TokenKind::kFloat: return MakeExpr<Literal>(line, Take().number);
    case TokenKind::kString: {
      std::string text = Take().text;
      while (Peek().kind == TokenKind::kString) text += Take().text;
      if (text.size() <= kMaxFieldBytes) fields_.insert(text);
      return MakeExpr<Literal>(line, std::move(text));
    }
    default: break;
  }
  if (At("(")) return ParseParentheses();
  if (At("[")) return ParseListDisplay();
  if (At("{")) return ParseDictDisplay();
  return Unexpected("an expression");
}

absl::StatusOr<ExprPtr> Parser::ParseNameOrConstant() {
  Token token = Take();
  if (token.text == "true" || token.text == "True") return MakeExpr<Literal>(token.line, true);
  if (token.text == "false" || token.text == "False") return MakeExpr<Literal>(token.line, false);
  if (token.text == "none" || token.text == "None") return MakeExpr<Literal>(token.line, std::monostate());
  if (token.text == "caller" || token.text == "varargs" || token.text == "kwargs" || token.text == "self" ||
      token.text == "super") {
    return Unsupported(token.line, Concat("'", token.text, "'"));
  }
  if (!local_names_.contains(token.text)) names_.insert(token.text);
  return MakeExpr<Name>(token.line, std::move(token.text));
}

absl::StatusOr<ExprPtr> Parser::ParseParentheses() {
  const int line = Take().line;
  if (TakeIf(")")) return MakeExpr<ListDisplay>(line, std::vector<ExprPtr>(), /*is_tuple=*/true);
  BATON_ASSIGN_OR_RETURN(ExprPtr expr, ParseTupleOrExpression());
  BATON_RETURN_IF_ERROR(Expect(")"));
  return expr;
}

absl::StatusOr<ExprPtr> Parser::ParseListDisplay() {
  const int line = Take().line;
  std::vector<ExprPtr> items;
  while (!At("]")) {
    if (!items.empty()) BATON_RETURN_IF_ERROR(Expect(","));
    if (At("]")) break;
    BATON_ASSIGN_OR_RETURN(ExprPtr item, ParseExpression());
    items.push_back(std::move(item));
  }
  Take();
  return MakeExpr<ListDisplay>(line, std::move(items), /*is_tuple=*/false);
}

absl::StatusOr<ExprPtr> Parser::ParseDictDisplay() {
  const int line = Take().line;
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
  while (!At("}")) {
    if (!entries.empty()) BATON_RETURN_IF_ERROR(Expect(","));
    if (At("}")) break;
    BATON_ASSIGN_OR_RETURN(ExprPtr key, ParseExpression());
    BATON_RETURN_IF_ERROR(Expect(":"));
    BATON_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
    entries.emplace_back(std::move(key), std::move(value));
  }
  Take();
  return MakeExpr<DictDisplay>(line, std::move(entries));
}

}  // namespace baton::jinja
