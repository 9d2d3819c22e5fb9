// SPDX-License-Identifier: Apache-2.0
// Parses the tokens of a template to a syntax tree, by recursive descent with bounded nesting.
//
// Jinja's statements, filters, tests and methods that Baton lacks are UNIMPLEMENTED, with the line. The parser reports
// them so that a render cannot fail for this reason.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/strings.h"
#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace baton::jinja {

absl::StatusOr<Template> ParseTemplate(std::string_view source);

// One pass over the tokens of a template. Statements are in parser.cc. Expressions are in parser_operators.cc,
// parser_primaries.cc and parser_postfix.cc. Not thread-safe.
class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  absl::StatusOr<Template> Run();

 private:
  // Counts the depth of recursive functions. A function that creates a Nesting must call CheckNesting() next.
  struct Nesting {
    explicit Nesting(int& depth) : depth(depth) { ++depth; }
    ~Nesting() { --depth; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    int& depth;
  };
  absl::Status CheckNesting() const;

  const Token& Peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  Token Take() { return at_ + 1 < tokens_.size() ? std::move(tokens_[at_++]) : tokens_[at_]; }
  // `text` is an operator or a name.
  bool At(std::string_view text) const {
    return (Peek().kind == TokenKind::kOperator || Peek().kind == TokenKind::kName) && Peek().text == text;
  }
  bool TakeIf(std::string_view text);
  absl::Status Expect(std::string_view text);
  absl::Status Expect(TokenKind kind, std::string_view what);
  absl::StatusOr<std::string> TakeAnyName(std::string_view what);
  absl::Status Unexpected(std::string_view expected) const;
  absl::Status Unsupported(int line, std::string_view what) const;  // UNIMPLEMENTED

  template <typename Variable>
  void EnterScope(const std::vector<Variable>& variables) {
    for (const Variable& variable : variables) local_names_.insert(variable.name);
  }
  template <typename Variable>
  void LeaveScope(const std::vector<Variable>& variables) {
    for (const Variable& variable : variables) local_names_.erase(local_names_.find(variable.name));
  }

  // Parses statements up to a tag named in `ends` and stops before the tag's name. Without `ends`, parses to the end of
  // the template.
  absl::StatusOr<Block> ParseBlock(std::initializer_list<std::string_view> ends);
  // Parses the end of the current tag, a block, and the tag `end`.
  absl::StatusOr<Block> ParseBody(std::string_view end);
  // Parses `else` with its block, if there is one, and the tag `end`.
  absl::StatusOr<Block> ParseElse(std::string_view end);
  absl::StatusOr<Statement::Node> ParseStatement();
  absl::StatusOr<Statement::Node> ParseIf();
  absl::StatusOr<Statement::Node> ParseFor();
  absl::StatusOr<Statement::Node> ParseSet();
  absl::StatusOr<Statement::Node> ParseSetBlock(Target target);
  absl::StatusOr<Statement::Node> ParseMacro();
  absl::StatusOr<Target> ParseTarget();

  absl::StatusOr<ExprPtr> ParseExpression(bool with_conditional = true);
  // Accepts a tuple without parentheses: "a, b".
  absl::StatusOr<ExprPtr> ParseTupleOrExpression(bool with_conditional = true);
  // Returns which of `operators` is the next token.
  template <typename Op>
  std::optional<Op> FindOp(std::initializer_list<std::pair<std::string_view, Op>> operators) const;
  absl::StatusOr<ExprPtr> ParseConditional();
  // Parses operands with left-associative operators between them.
  absl::StatusOr<ExprPtr> ParseLeft(std::initializer_list<std::pair<std::string_view, BinaryOp>> operators,
                                    absl::StatusOr<ExprPtr> (Parser::*parse_operand)());
  absl::StatusOr<ExprPtr> ParseOr();
  absl::StatusOr<ExprPtr> ParseAnd();
  absl::StatusOr<ExprPtr> ParseNot();
  absl::StatusOr<ExprPtr> ParseCompare();
  absl::StatusOr<ExprPtr> ParseSum();
  absl::StatusOr<ExprPtr> ParseConcat();
  absl::StatusOr<ExprPtr> ParseProduct();
  absl::StatusOr<ExprPtr> ParsePower();
  absl::StatusOr<ExprPtr> ParseUnary() { return ParseUnary(/*with_filters=*/true); }
  absl::StatusOr<ExprPtr> ParseUnary(bool with_filters);
  absl::StatusOr<ExprPtr> ParsePrimary();
  absl::StatusOr<ExprPtr> ParseNameOrConstant();
  absl::StatusOr<ExprPtr> ParseParentheses();
  absl::StatusOr<ExprPtr> ParseListDisplay();
  absl::StatusOr<ExprPtr> ParseDictDisplay();
  absl::StatusOr<ExprPtr> ParsePostfix(ExprPtr expr);
  absl::StatusOr<ExprPtr> ParseFiltersAndTests(ExprPtr expr);
  absl::StatusOr<ExprPtr> ParseAttribute(ExprPtr object);
  absl::StatusOr<ExprPtr> ParseSubscript(ExprPtr object);
  absl::StatusOr<ExprPtr> ParseSliceFrom(int line, ExprPtr object, ExprPtr start);
  absl::StatusOr<ExprPtr> ParseCall(ExprPtr callee);
  absl::StatusOr<ArgumentExprs> ParseArguments();
  absl::StatusOr<ApplyBuiltin> ParseFilter();  // without input
  absl::StatusOr<ExprPtr> ParseTest(ExprPtr input);
  absl::Status CheckCallee(int line, const Expr& callee) const;
  // Checks the names in map('upper') and select('odd').
  absl::Status CheckNamesIn(int line, std::string_view filter, const ArgumentExprs& arguments) const;

  std::vector<Token> tokens_;
  Template::Names names_;
  std::multiset<std::string, std::less<>> local_names_;  // variables of the enclosing loops and macros
  Template::Names macro_names_;
  Template::Names fields_;
  size_t at_ = 0;  // index of the next token
  int depth_ = 0;
  int loops_ = 0;  // number of enclosing loops
};

}  // namespace baton::jinja
