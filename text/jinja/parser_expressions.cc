#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "common/status_macros.h"
#include "common/strings.h"
#include "text/jinja/parser.h"

namespace baton::jinja {
namespace {

// Longer strings are no field's name.
constexpr size_t kMaxFieldBytes = 64;

// Of an expression's tree: a chain such as a + b + c + ... nests without brackets.
constexpr int kMaxExpressionDepth = 200;

// Of a string's literal; null for any other expression.
const std::string* TextOf(const Expr& expr) {
  const auto* literal = std::get_if<Literal>(&expr.node);
  return literal == nullptr ? nullptr : std::get_if<std::string>(&literal->value);
}

int Depth(const ExprPtr& expr) { return expr == nullptr ? 0 : expr->depth; }

int Depth(const std::vector<ExprPtr>& exprs) {
  int depth = 0;
  for (const ExprPtr& expr : exprs) depth = std::max(depth, Depth(expr));
  return depth;
}

int Depth(const ArgumentExprs& arguments) {
  int depth = Depth(arguments.positional);
  for (const auto& [name, value] : arguments.named) depth = std::max(depth, Depth(value));
  return depth;
}

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

// Where a filter such as map names another one: its position among the arguments, or -1.
struct NestedNames {
  int filter = -1;
  int test = -1;
};

NestedNames NamesIn(std::string_view filter) {
  if (filter == "map") return {.filter = 0};
  if (filter == "select" || filter == "reject") return {.test = 0};
  if (filter == "selectattr" || filter == "rejectattr") return {.test = 1};
  return {};
}

}  // namespace

template <typename Node>
absl::StatusOr<ExprPtr> Parser::Make(int line, int depth_below, Node node) {
  if (depth_below >= kMaxExpressionDepth) {
    return SyntaxError(line, Concat("an expression deeper than ", kMaxExpressionDepth, " levels"));
  }
  auto expr = std::make_unique<Expr>();
  expr->line = line;
  expr->depth = depth_below + 1;
  expr->node = std::move(node);
  return expr;
}

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
  const int depth = Depth(tuple.items);
  return Make(line, depth, std::move(tuple));
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
    const int depth = std::max({Depth(condition), Depth(expr), Depth(otherwise)});
    BATON_ASSIGN_OR_RETURN(expr,
                           Make(line, depth, Conditional{std::move(condition), std::move(expr), std::move(otherwise)}));
  }
  return expr;
}

absl::StatusOr<ExprPtr> Parser::ParseOr() {
  const int line = Peek().line;
  BATON_ASSIGN_OR_RETURN(ExprPtr left, ParseAnd());
  while (TakeName("or")) {
    BATON_ASSIGN_OR_RETURN(ExprPtr right, ParseAnd());
    const int depth = std::max(Depth(left), Depth(right));
    BATON_ASSIGN_OR_RETURN(left, Make(line, depth, Binary{BinaryOp::kOr, std::move(left), std::move(right)}));
  }
  return left;
}

absl::StatusOr<ExprPtr> Parser::ParseAnd() {
  const int line = Peek().line;
  BATON_ASSIGN_OR_RETURN(ExprPtr left, ParseNot());
  while (TakeName("and")) {
    BATON_ASSIGN_OR_RETURN(ExprPtr right, ParseNot());
    const int depth = std::max(Depth(left), Depth(right));
    BATON_ASSIGN_OR_RETURN(left, Make(line, depth, Binary{BinaryOp::kAnd, std::move(left), std::move(right)}));
  }
  return left;
}

absl::StatusOr<ExprPtr> Parser::ParseNot() {
  if (!AtName("not")) return ParseCompare();
  const Nesting nesting(depth_);
  BATON_RETURN_IF_ERROR(CheckNesting());
  const int line = Take().line;
  BATON_ASSIGN_OR_RETURN(ExprPtr operand, ParseNot());
  const int depth = Depth(operand);
  return Make(line, depth, Unary{UnaryOp::kNot, std::move(operand)});
}

absl::StatusOr<ExprPtr> Parser::ParseCompare() {
  const int line = Peek().line;
  Compare compare;
  BATON_ASSIGN_OR_RETURN(compare.first, ParseSum());
  int depth = Depth(compare.first);
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
    depth = std::max(depth, Depth(right));
    compare.rest.emplace_back(*op, std::move(right));
  }
  if (compare.rest.empty()) return std::move(compare.first);
  return Make(line, depth, std::move(compare));
}

absl::StatusOr<ExprPtr> Parser::ParseSum() {
  const int line = Peek().line;
  BATON_ASSIGN_OR_RETURN(ExprPtr left, ParseConcat());
  while (const auto op = FindOp({{"+", BinaryOp::kAdd}, {"-", BinaryOp::kSubtract}}, Peek())) {
    Take();
    BATON_ASSIGN_OR_RETURN(ExprPtr right, ParseConcat());
    const int depth = std::max(Depth(left), Depth(right));
    BATON_ASSIGN_OR_RETURN(left, Make(line, depth, Binary{*op, std::move(left), std::move(right)}));
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
  const int depth = Depth(concat.parts);
  return Make(line, depth, std::move(concat));
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
    const int depth = std::max(Depth(left), Depth(right));
    BATON_ASSIGN_OR_RETURN(left, Make(line, depth, Binary{*op, std::move(left), std::move(right)}));
  }
  return left;
}

absl::StatusOr<ExprPtr> Parser::ParsePower() {
  const int line = Peek().line;
  BATON_ASSIGN_OR_RETURN(ExprPtr left, ParseUnary());
  while (TakeOperator("**")) {  // to the left, unlike Python
    BATON_ASSIGN_OR_RETURN(ExprPtr right, ParseUnary());
    const int depth = std::max(Depth(left), Depth(right));
    BATON_ASSIGN_OR_RETURN(left, Make(line, depth, Binary{BinaryOp::kPower, std::move(left), std::move(right)}));
  }
  return left;
}

// A sign binds looser than what follows the operand, but tighter than its filters.
absl::StatusOr<ExprPtr> Parser::ParseUnary(bool with_filters) {
  const Nesting nesting(depth_);
  BATON_RETURN_IF_ERROR(CheckNesting());
  const int line = Peek().line;
  ExprPtr expr;
  if (AtOperator("-") || AtOperator("+")) {
    const UnaryOp op = Take().text == "-" ? UnaryOp::kNegate : UnaryOp::kPlus;
    BATON_ASSIGN_OR_RETURN(ExprPtr operand, ParseUnary(/*with_filters=*/false));
    const int depth = Depth(operand);
    BATON_ASSIGN_OR_RETURN(expr, Make(line, depth, Unary{op, std::move(operand)}));
  } else {
    BATON_ASSIGN_OR_RETURN(expr, ParsePrimary());
  }
  BATON_ASSIGN_OR_RETURN(expr, ParsePostfix(std::move(expr)));
  if (with_filters) return ParseFiltersAndTests(std::move(expr));
  return expr;
}

absl::StatusOr<ExprPtr> Parser::ParsePrimary() {
  const int line = Peek().line;
  switch (Peek().kind) {
    case TokenKind::kName:
      return ParseNameOrConstant();
    case TokenKind::kInteger:
      return Make(line, 0, Literal{Take().integer});
    case TokenKind::kFloat:
      return Make(line, 0, Literal{Take().number});
    case TokenKind::kString: {
      std::string text = Take().text;
      while (Peek().kind == TokenKind::kString) text += Take().text;
      if (text.size() <= kMaxFieldBytes) fields_.insert(text);
      return Make(line, 0, Literal{std::move(text)});
    }
    default:
      break;
  }
  if (AtOperator("(")) return ParseParentheses();
  if (AtOperator("[")) return ParseListDisplay();
  if (AtOperator("{")) return ParseDictDisplay();
  return Unexpected("an expression");
}

absl::StatusOr<ExprPtr> Parser::ParseNameOrConstant() {
  Token token = Take();
  if (token.text == "true" || token.text == "True") return Make(token.line, 0, Literal{true});
  if (token.text == "false" || token.text == "False") return Make(token.line, 0, Literal{false});
  if (token.text == "none" || token.text == "None") return Make(token.line, 0, Literal{std::monostate()});
  if (token.text == "caller" || token.text == "varargs" || token.text == "kwargs" || token.text == "self" ||
      token.text == "super") {
    return Missing(token.line, Concat("'", token.text, "'"));
  }
  if (!local_names_.contains(token.text)) names_.insert(token.text);
  return Make(token.line, 0, Name{std::move(token.text)});
}

absl::StatusOr<ExprPtr> Parser::ParseParentheses() {
  const int line = Take().line;
  if (TakeOperator(")")) return Make(line, 0, ListDisplay{.items = {}, .is_tuple = true});
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
  const int depth = Depth(list.items);
  return Make(line, depth, std::move(list));
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
    depth = std::max({depth, Depth(key), Depth(value)});
    dict.entries.emplace_back(std::move(key), std::move(value));
  }
  Take();
  return Make(line, depth, std::move(dict));
}

absl::StatusOr<ExprPtr> Parser::ParsePostfix(ExprPtr expr) {
  while (true) {
    if (AtOperator(".")) {
      BATON_ASSIGN_OR_RETURN(expr, ParseAttribute(std::move(expr)));
    } else if (AtOperator("[")) {
      BATON_ASSIGN_OR_RETURN(expr, ParseSubscript(std::move(expr)));
    } else if (AtOperator("(")) {
      BATON_ASSIGN_OR_RETURN(expr, ParseCall(std::move(expr)));
    } else {
      return expr;
    }
  }
}

absl::StatusOr<ExprPtr> Parser::ParseFiltersAndTests(ExprPtr expr) {
  while (true) {
    if (AtOperator("|")) {
      const int line = Take().line;
      BATON_ASSIGN_OR_RETURN(ApplyFilter filter, ParseFilter());
      filter.input = std::move(expr);
      const int depth = std::max(Depth(filter.input), Depth(filter.arguments));
      BATON_ASSIGN_OR_RETURN(expr, Make(line, depth, std::move(filter)));
    } else if (AtName("is")) {
      BATON_ASSIGN_OR_RETURN(expr, ParseTest(std::move(expr)));
    } else if (AtOperator("(")) {
      BATON_ASSIGN_OR_RETURN(expr, ParseCall(std::move(expr)));
    } else {
      return expr;
    }
  }
}

absl::StatusOr<ExprPtr> Parser::ParseAttribute(ExprPtr object) {
  const int line = Take().line;
  const int depth = Depth(object);
  if (Peek().kind == TokenKind::kInteger) {
    BATON_ASSIGN_OR_RETURN(ExprPtr key, Make(line, 0, Literal{Take().integer}));
    return Make(line, depth, Item{std::move(object), std::move(key)});
  }
  BATON_ASSIGN_OR_RETURN(std::string name, TakeAnyName("an attribute"));
  fields_.insert(name);
  return Make(line, depth, Attribute{std::move(object), std::move(name)});
}

absl::StatusOr<ExprPtr> Parser::ParseSubscript(ExprPtr object) {
  const int line = Take().line;
  ExprPtr key;
  if (!AtOperator(":")) {
    BATON_ASSIGN_OR_RETURN(key, ParseExpression());
    if (TakeOperator("]")) {
      const int depth = std::max(Depth(object), Depth(key));
      return Make(line, depth, Item{std::move(object), std::move(key)});
    }
    if (AtOperator(",")) return Missing(line, "a subscript with several keys");
  }
  return ParseSliceFrom(line, std::move(object), std::move(key));
}

absl::StatusOr<ExprPtr> Parser::ParseSliceFrom(int line, ExprPtr object, ExprPtr start) {
  Slice slice{.object = std::move(object), .start = std::move(start), .stop = nullptr, .step = nullptr};
  BATON_RETURN_IF_ERROR(ExpectOperator(":"));
  if (!AtOperator(":") && !AtOperator("]")) {
    BATON_ASSIGN_OR_RETURN(slice.stop, ParseExpression());
  }
  if (TakeOperator(":") && !AtOperator("]")) {
    BATON_ASSIGN_OR_RETURN(slice.step, ParseExpression());
  }
  BATON_RETURN_IF_ERROR(ExpectOperator("]"));
  const int depth = std::max({Depth(slice.object), Depth(slice.start), Depth(slice.stop), Depth(slice.step)});
  return Make(line, depth, std::move(slice));
}

absl::StatusOr<ExprPtr> Parser::ParseCall(ExprPtr callee) {
  const int line = Peek().line;
  BATON_RETURN_IF_ERROR(CheckCallee(line, *callee));
  BATON_ASSIGN_OR_RETURN(ArgumentExprs arguments, ParseArguments());
  const int depth = std::max(Depth(callee), Depth(arguments));
  return Make(line, depth, Call{std::move(callee), std::move(arguments)});
}

absl::Status Parser::CheckCallee(int line, const Expr& callee) const {
  if (const auto* attribute = std::get_if<Attribute>(&callee.node)) {
    if (!IsMethodName(attribute->name)) return Missing(line, Concat("the method '", attribute->name, "'"));
    if (const std::string* text = TextOf(*attribute->object); text != nullptr && attribute->name == "format") {
      const std::string_view field = MissingFormatField(*text);
      if (!field.empty()) return Missing(line, Concat("the format '{", field, "}'"));
    }
  } else if (const auto* name = std::get_if<Name>(&callee.node)) {
    if (name->name == "loop") return Missing(line, "a recursive loop");
    if (IsMissingFunction(name->name)) return Missing(line, Concat("the function '", name->name, "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ArgumentExprs> Parser::ParseArguments() {
  BATON_RETURN_IF_ERROR(ExpectOperator("("));
  ArgumentExprs arguments;
  bool first = true;
  while (!AtOperator(")")) {
    if (!first) BATON_RETURN_IF_ERROR(ExpectOperator(","));
    first = false;
    if (AtOperator(")")) break;
    if (AtOperator("*") || AtOperator("**")) return Missing(Peek().line, "unpacking arguments");
    const bool is_named =
        Peek().kind == TokenKind::kName && Peek(1).kind == TokenKind::kOperator && Peek(1).text == "=";
    if (is_named) {
      std::string name = Take().text;
      Take();
      BATON_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
      arguments.named.emplace_back(std::move(name), std::move(value));
    } else {
      if (!arguments.named.empty()) return Unexpected("a named argument, as those before are");
      BATON_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
      arguments.positional.push_back(std::move(value));
    }
  }
  Take();
  return arguments;
}

absl::StatusOr<ApplyFilter> Parser::ParseFilter() {
  const int line = Peek().line;
  ApplyFilter filter;
  BATON_ASSIGN_OR_RETURN(filter.name, TakeAnyName("a filter"));
  filter.filter = FindFilter(filter.name);
  if (filter.filter == nullptr) return Missing(line, Concat("the filter '", filter.name, "'"));
  if (AtOperator("(")) {
    BATON_ASSIGN_OR_RETURN(filter.arguments, ParseArguments());
  }
  BATON_RETURN_IF_ERROR(CheckNamesIn(line, filter));
  return filter;
}

absl::Status Parser::CheckNamesIn(int line, const ApplyFilter& filter) const {
  const auto name_at = [&](int position) -> const std::string* {
    if (position < 0 || filter.arguments.positional.size() <= static_cast<size_t>(position)) return nullptr;
    return TextOf(*filter.arguments.positional[position]);
  };
  const NestedNames names = NamesIn(filter.name);
  if (const std::string* name = name_at(names.filter); name != nullptr && FindFilter(*name) == nullptr) {
    return Missing(line, Concat("the filter '", *name, "'"));
  }
  if (const std::string* name = name_at(names.test); name != nullptr && FindTest(*name) == nullptr) {
    return Missing(line, Concat("the test '", *name, "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ExprPtr> Parser::ParseTest(ExprPtr input) {
  const int line = Take().line;
  const bool negated = TakeName("not");
  ApplyTest test;
  BATON_ASSIGN_OR_RETURN(test.name, TakeAnyName("a test"));
  test.test = FindTest(test.name);
  if (test.test == nullptr) return Missing(line, Concat("the test '", test.name, "'"));
  const TokenKind next = Peek().kind;
  if (AtOperator("(")) {
    BATON_ASSIGN_OR_RETURN(test.arguments, ParseArguments());
  } else if (next == TokenKind::kString || next == TokenKind::kInteger || next == TokenKind::kFloat ||
             AtOperator("[") || AtOperator("{") ||
             (next == TokenKind::kName && !AtName("else") && !AtName("or") && !AtName("and"))) {
    // One argument may go without parentheses: "x is divisibleby 3".
    if (AtName("is")) return SyntaxError(line, "tests cannot be chained with 'is'");
    BATON_ASSIGN_OR_RETURN(ExprPtr argument, ParsePrimary());
    BATON_ASSIGN_OR_RETURN(argument, ParsePostfix(std::move(argument)));
    test.arguments.positional.push_back(std::move(argument));
  }
  test.input = std::move(input);
  const int depth = std::max(Depth(test.input), Depth(test.arguments));
  BATON_ASSIGN_OR_RETURN(ExprPtr expr, Make(line, depth, std::move(test)));
  if (!negated) return expr;
  return Make(line, depth + 1, Unary{UnaryOp::kNot, std::move(expr)});
}

}  // namespace baton::jinja
