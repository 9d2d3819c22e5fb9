// SPDX-License-Identifier: Apache-2.0
// Parses the parts that follow a primary expression: attributes, subscripts, calls, filters and tests.
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "common/status_macros.h"
#include "common/strings.h"
#include "text/jinja/make_expr.h"
#include "text/jinja/parser.h"

namespace baton::jinja {
namespace {

// Returns the value of a string literal, or null for any other expression.
const std::string* TextOf(const Expr& expr) {
  const auto* literal = std::get_if<Literal>(&expr.node);
  return literal == nullptr ? nullptr : std::get_if<std::string>(&literal->value);
}

}  // namespace

absl::StatusOr<ExprPtr> Parser::ParsePostfix(ExprPtr expr) {
  while (true) {
    if (At(".")) {
      BATON_ASSIGN_OR_RETURN(expr, ParseAttribute(std::move(expr)));
    } else if (At("[")) {
      BATON_ASSIGN_OR_RETURN(expr, ParseSubscript(std::move(expr)));
    } else if (At("(")) {
      BATON_ASSIGN_OR_RETURN(expr, ParseCall(std::move(expr)));
    } else {
      return expr;
    }
  }
}

absl::StatusOr<ExprPtr> Parser::ParseFiltersAndTests(ExprPtr expr) {
  while (true) {
    if (At("|")) {
      const int line = Take().line;
      BATON_ASSIGN_OR_RETURN(ApplyBuiltin filter, ParseFilter());
      BATON_ASSIGN_OR_RETURN(
          expr, MakeExpr<ApplyBuiltin>(line, std::move(expr), filter.builtin, std::move(filter.arguments)));
    } else if (At("is")) {
      BATON_ASSIGN_OR_RETURN(expr, ParseTest(std::move(expr)));
    } else if (At("(")) {
      BATON_ASSIGN_OR_RETURN(expr, ParseCall(std::move(expr)));
    } else {
      return expr;
    }
  }
}

absl::StatusOr<ExprPtr> Parser::ParseAttribute(ExprPtr object) {
  const int line = Take().line;
  if (Peek().kind == TokenKind::kInteger) {
    BATON_ASSIGN_OR_RETURN(ExprPtr key, MakeExpr<Literal>(line, Take().integer));
    return MakeExpr<Item>(line, std::move(object), std::move(key));
  }
  BATON_ASSIGN_OR_RETURN(std::string name, TakeAnyName("an attribute"));
  fields_.insert(name);
  return MakeExpr<Attribute>(line, std::move(object), std::move(name));
}

absl::StatusOr<ExprPtr> Parser::ParseSubscript(ExprPtr object) {
  const int line = Take().line;
  ExprPtr key;
  if (!At(":")) {
    BATON_ASSIGN_OR_RETURN(key, ParseExpression());
    if (TakeIf("]")) return MakeExpr<Item>(line, std::move(object), std::move(key));
    if (At(",")) return Unsupported(line, "a subscript with several keys");
  }
  return ParseSliceFrom(line, std::move(object), std::move(key));
}

absl::StatusOr<ExprPtr> Parser::ParseSliceFrom(int line, ExprPtr object, ExprPtr start) {
  ExprPtr stop;
  ExprPtr step;
  BATON_RETURN_IF_ERROR(Expect(":"));
  if (!At(":") && !At("]")) {
    BATON_ASSIGN_OR_RETURN(stop, ParseExpression());
  }
  if (TakeIf(":") && !At("]")) {
    BATON_ASSIGN_OR_RETURN(step, ParseExpression());
  }
  BATON_RETURN_IF_ERROR(Expect("]"));
  return MakeExpr<Slice>(line, std::move(object), std::move(start), std::move(stop), std::move(step));
}

absl::StatusOr<ExprPtr> Parser::ParseCall(ExprPtr callee) {
  const int line = Peek().line;
  BATON_RETURN_IF_ERROR(CheckCallee(line, *callee));
  BATON_ASSIGN_OR_RETURN(ArgumentExprs arguments, ParseArguments());
  return MakeExpr<Call>(line, std::move(callee), std::move(arguments));
}

absl::Status Parser::CheckCallee(int line, const Expr& callee) const {
  if (const auto* attribute = std::get_if<Attribute>(&callee.node)) {
    if (!IsMethodName(attribute->name)) return Unsupported(line, Concat("the method '", attribute->name, "'"));
    if (const std::string* text = TextOf(*attribute->object); text != nullptr && attribute->name == "format") {
      const std::string_view field = UnsupportedFormatField(*text);
      if (!field.empty()) return Unsupported(line, Concat("the format '{", field, "}'"));
    }
  } else if (const auto* name = std::get_if<Name>(&callee.node)) {
    if (name->name == "loop") return Unsupported(line, "a recursive loop");
    if (IsUnsupportedFunction(name->name)) return Unsupported(line, Concat("the function '", name->name, "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ArgumentExprs> Parser::ParseArguments() {
  BATON_RETURN_IF_ERROR(Expect("("));
  ArgumentExprs arguments;
  bool first = true;
  while (!At(")")) {
    if (!first) BATON_RETURN_IF_ERROR(Expect(","));
    first = false;
    if (At(")")) break;
    if (At("*") || At("**")) return Unsupported(Peek().line, "unpacking arguments");
    const bool is_named =
        Peek().kind == TokenKind::kName && Peek(1).kind == TokenKind::kOperator && Peek(1).text == "=";
    if (is_named) {
      std::string name = Take().text;
      Take();
      BATON_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
      arguments.named.emplace_back(std::move(name), std::move(value));
    } else {
      if (!arguments.named.empty()) return Unexpected("a named argument, because the previous argument is named");
      BATON_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
      arguments.positional.push_back(std::move(value));
    }
  }
  Take();
  return arguments;
}

absl::StatusOr<ApplyBuiltin> Parser::ParseFilter() {
  const int line = Peek().line;
  BATON_ASSIGN_OR_RETURN(const std::string name, TakeAnyName("a filter"));
  ApplyBuiltin filter{.input = nullptr, .builtin = FindFilter(name), .arguments = {}};
  if (!filter.builtin.is_known()) return Unsupported(line, Concat("the filter '", name, "'"));
  if (At("(")) {
    BATON_ASSIGN_OR_RETURN(filter.arguments, ParseArguments());
  }
  BATON_RETURN_IF_ERROR(CheckNamesIn(line, name, filter.arguments));
  return filter;
}

absl::Status Parser::CheckNamesIn(int line, std::string_view filter, const ArgumentExprs& arguments) const {
  const bool takes_attribute = filter == "selectattr" || filter == "rejectattr";
  const bool takes_test = takes_attribute || filter == "select" || filter == "reject";
  const size_t at = takes_attribute ? 1 : 0;
  if ((!takes_test && filter != "map") || at >= arguments.positional.size()) return absl::OkStatus();
  const std::string* name = TextOf(*arguments.positional[at]);
  if (name == nullptr || (takes_test ? FindTest(*name) : FindFilter(*name)).is_known()) return absl::OkStatus();
  return Unsupported(line, Concat(takes_test ? "the test '" : "the filter '", *name, "'"));
}

absl::StatusOr<ExprPtr> Parser::ParseTest(ExprPtr input) {
  const int line = Take().line;
  const bool negated = TakeIf("not");
  BATON_ASSIGN_OR_RETURN(const std::string name, TakeAnyName("a test"));
  const BuiltinFn test = FindTest(name);
  if (!test.is_known()) return Unsupported(line, Concat("the test '", name, "'"));
  ArgumentExprs arguments;
  const TokenKind next = Peek().kind;
  if (At("(")) {
    BATON_ASSIGN_OR_RETURN(arguments, ParseArguments());
  } else if (next == TokenKind::kString || next == TokenKind::kInteger || next == TokenKind::kFloat || At("[") ||
             At("{") || (next == TokenKind::kName && !At("else") && !At("or") && !At("and"))) {
    // A single argument needs no parentheses: "x is divisibleby 3".
    if (At("is")) return SyntaxError(line, "tests cannot be chained with 'is'");
    BATON_ASSIGN_OR_RETURN(ExprPtr argument, ParsePrimary());
    BATON_ASSIGN_OR_RETURN(argument, ParsePostfix(std::move(argument)));
    arguments.positional.push_back(std::move(argument));
  }
  BATON_ASSIGN_OR_RETURN(ExprPtr expr, MakeExpr<ApplyBuiltin>(line, std::move(input), test, std::move(arguments)));
  if (!negated) return expr;
  return MakeExpr<Unary>(line, UnaryOp::kNot, std::move(expr));
}

}  // namespace baton::jinja
