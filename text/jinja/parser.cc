// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/parser.h"

#include <array>
#include <set>

#include "common/status_macros.h"
#include "common/strings.h"
#include "text/utf8.h"

namespace baton::jinja {
namespace {

// Bounds the stack: a level of nested brackets or blocks takes about a dozen calls.
constexpr int kMaxNesting = 200;

constexpr std::array<std::string_view, 13> kUnsupportedStatements = {
    "autoescape", "block",   "call",      "do",    "extends", "filter", "from",
    "import",     "include", "pluralize", "print", "trans",   "with"};

std::string Describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kText: return "text";
    case TokenKind::kBlockBegin: return "'{%'";
    case TokenKind::kBlockEnd: return "'%}'";
    case TokenKind::kVariableBegin: return "'{{'";
    case TokenKind::kVariableEnd: return "'}}'";
    case TokenKind::kEnd: return "the end of the template";
    case TokenKind::kString: return "a string";
    default: return Concat("'", token.text, "'");
  }
}

void AddTo(Block& block, int line, Statement::Node node) {
  block.push_back(std::make_unique<Statement>(Statement{.line = line, .node = std::move(node)}));
}

}  // namespace

absl::StatusOr<Template> ParseTemplate(std::string_view source) {
  if (const size_t valid = ValidUtf8Prefix(source); valid != source.size()) {
    return absl::InvalidArgumentError(Concat("chat template: invalid UTF-8 at byte ", valid));
  }
  BATON_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(source));
  return Parser(std::move(tokens)).Run();
}

absl::StatusOr<Template> Parser::Run() {
  Template result;
  BATON_ASSIGN_OR_RETURN(result.body, ParseBlock({}));
  const auto is_defined_here = [this](const std::string& name) {
    return name == "loop" || macro_names_.contains(name) || FindFunction(name) != nullptr;
  };
  std::erase_if(names_, is_defined_here);
  result.variables = std::move(names_);
  result.fields = std::move(fields_);
  return result;
}

absl::Status Parser::CheckNesting() const {
  if (depth_ <= kMaxNesting) return absl::OkStatus();
  return SyntaxError(Peek().line, Concat("expected at most ", kMaxNesting, " levels of nesting"));
}

bool Parser::TakeIf(std::string_view text) {
  if (!At(text)) return false;
  Take();
  return true;
}

absl::Status Parser::Expect(std::string_view text) {
  return TakeIf(text) ? absl::OkStatus() : Unexpected(Concat("'", text, "'"));
}

absl::Status Parser::Expect(TokenKind kind, std::string_view what) {
  if (Peek().kind != kind) return Unexpected(what);
  Take();
  return absl::OkStatus();
}

absl::StatusOr<std::string> Parser::TakeAnyName(std::string_view what) {
  if (Peek().kind != TokenKind::kName) return Unexpected(what);
  return Take().text;
}

absl::Status Parser::Unexpected(std::string_view expected) const {
  return SyntaxError(Peek().line, Concat("expected ", expected, ", got ", Describe(Peek())));
}

absl::Status Parser::Unsupported(int line, std::string_view what) const {
  return absl::UnimplementedError(Concat("chat template, line ", line, ": ", what, " is not supported"));
}

absl::StatusOr<Block> Parser::ParseBlock(std::initializer_list<std::string_view> ends) {
  const Nesting nesting(depth_);
  BATON_RETURN_IF_ERROR(CheckNesting());
  Block block;
  while (Peek().kind != TokenKind::kEnd) {
    const int line = Peek().line;
    if (Peek().kind == TokenKind::kText) {
      AddTo(block, line, Text{Take().text});
    } else if (Peek().kind == TokenKind::kVariableBegin) {
      Take();
      BATON_ASSIGN_OR_RETURN(ExprPtr value, ParseTupleOrExpression());
      BATON_RETURN_IF_ERROR(Expect(TokenKind::kVariableEnd, "'}}'"));
      AddTo(block, line, Output{std::move(value)});
    } else {
      BATON_RETURN_IF_ERROR(Expect(TokenKind::kBlockBegin, "a statement"));
      for (const std::string_view end : ends) {
        if (At(end)) return block;
      }
      const int name_line = Peek().line;
      BATON_ASSIGN_OR_RETURN(Statement::Node statement, ParseStatement());
      AddTo(block, name_line, std::move(statement));
    }
  }
  if (ends.size() > 0) return Unexpected(Concat("'{% ", *(ends.end() - 1), " %}'"));
  return block;
}

absl::StatusOr<Block> Parser::ParseBody(std::string_view end) {
  BATON_RETURN_IF_ERROR(Expect(TokenKind::kBlockEnd, "'%}'"));
  BATON_ASSIGN_OR_RETURN(Block body, ParseBlock({end}));
  Take();
  BATON_RETURN_IF_ERROR(Expect(TokenKind::kBlockEnd, "'%}'"));
  return body;
}

absl::StatusOr<Block> Parser::ParseElse(std::string_view end) {
  if (TakeIf("else")) return ParseBody(end);
  Take();
  BATON_RETURN_IF_ERROR(Expect(TokenKind::kBlockEnd, "'%}'"));
  return Block();
}

absl::StatusOr<Statement::Node> Parser::ParseStatement() {
  const int line = Peek().line;
  BATON_ASSIGN_OR_RETURN(const std::string name, TakeAnyName("a statement"));
  if (name == "if") return ParseIf();
  if (name == "for") return ParseFor();
  if (name == "set") return ParseSet();
  if (name == "macro") return ParseMacro();
  if (name == "generation") {
    BATON_ASSIGN_OR_RETURN(Block body, ParseBody("endgeneration"));
    return Generation{std::move(body)};
  }
  if (name == "break" || name == "continue") {
    if (loops_ == 0) return SyntaxError(line, Concat("'", name, "' outside of a loop"));
    BATON_RETURN_IF_ERROR(Expect(TokenKind::kBlockEnd, "'%}'"));
    return name == "break" ? LoopControl::kBreak : LoopControl::kContinue;
  }
  if (std::find(kUnsupportedStatements.begin(), kUnsupportedStatements.end(), name) != kUnsupportedStatements.end()) {
    return Unsupported(line, Concat("the statement '", name, "'"));
  }
  return SyntaxError(line, Concat("unknown statement '", name, "'"));
}

absl::StatusOr<Statement::Node> Parser::ParseIf() {
  If statement;
  while (true) {
    BATON_ASSIGN_OR_RETURN(ExprPtr condition, ParseTupleOrExpression(/*with_conditional=*/false));
    BATON_RETURN_IF_ERROR(Expect(TokenKind::kBlockEnd, "'%}'"));
    BATON_ASSIGN_OR_RETURN(Block body, ParseBlock({"elif", "else", "endif"}));
    statement.branches.emplace_back(std::move(condition), std::move(body));
    if (!TakeIf("elif")) break;
  }
  BATON_ASSIGN_OR_RETURN(statement.otherwise, ParseElse("endif"));
  return statement;
}

absl::StatusOr<Statement::Node> Parser::ParseFor() {
  For statement;
  // Targets: "a", "a, b" or "(a, b)".
  const bool in_parentheses = TakeIf("(");
  do {
    if (in_parentheses ? At(")") : At("in")) break;
    BATON_ASSIGN_OR_RETURN(std::string target, TakeAnyName("a loop variable"));
    statement.targets.push_back({.name = std::move(target)});
    statement.unpacks |= At(",");
  } while (TakeIf(","));
  if (in_parentheses) BATON_RETURN_IF_ERROR(Expect(")"));
  if (statement.targets.empty()) return Unexpected("a loop variable");
  BATON_RETURN_IF_ERROR(Expect("in"));
  BATON_ASSIGN_OR_RETURN(statement.items, ParseTupleOrExpression(/*with_conditional=*/false));
  EnterScope(statement.targets);
  if (TakeIf("if")) {
    BATON_ASSIGN_OR_RETURN(statement.condition, ParseExpression());
  }
  if (At("recursive")) return Unsupported(Peek().line, "a recursive loop");
  BATON_RETURN_IF_ERROR(Expect(TokenKind::kBlockEnd, "'%}'"));
  ++loops_;
  absl::StatusOr<Block> body = ParseBlock({"else", "endfor"});
  --loops_;
  LeaveScope(statement.targets);
  BATON_RETURN_IF_ERROR(body.status());
  statement.body = *std::move(body);
  BATON_ASSIGN_OR_RETURN(statement.otherwise, ParseElse("endfor"));
  return statement;
}

absl::StatusOr<Target> Parser::ParseTarget() {
  Target target;
  BATON_ASSIGN_OR_RETURN(target.name, TakeAnyName("a variable"));
  if (TakeIf(".")) {
    BATON_ASSIGN_OR_RETURN(target.attribute, TakeAnyName("an attribute"));
  }
  return target;
}

absl::StatusOr<Statement::Node> Parser::ParseSet() {
  Set statement;
  do {
    if (At("=")) break;
    BATON_ASSIGN_OR_RETURN(Target target, ParseTarget());
    statement.targets.push_back(std::move(target));
    statement.unpacks |= At(",");
  } while (TakeIf(","));
  if (TakeIf("=")) {
    if (statement.targets.empty()) return Unexpected("a variable");
    BATON_ASSIGN_OR_RETURN(statement.value, ParseTupleOrExpression());
    BATON_RETURN_IF_ERROR(Expect(TokenKind::kBlockEnd, "'%}'"));
    return statement;
  }
  if (statement.unpacks) return Unexpected("'='");
  return ParseSetBlock(std::move(statement.targets[0]));
}

absl::StatusOr<Statement::Node> Parser::ParseSetBlock(Target target) {
  SetBlock statement{.target = std::move(target), .body = {}, .filters = {}};
  while (TakeIf("|")) {
    BATON_ASSIGN_OR_RETURN(ApplyBuiltin filter, ParseFilter());
    statement.filters.push_back(std::move(filter));
  }
  BATON_ASSIGN_OR_RETURN(statement.body, ParseBody("endset"));
  return statement;
}

absl::StatusOr<Statement::Node> Parser::ParseMacro() {
  MacroDefinition macro;
  BATON_ASSIGN_OR_RETURN(macro.name, TakeAnyName("a macro's name"));
  macro_names_.insert(macro.name);
  BATON_RETURN_IF_ERROR(Expect("("));
  while (!At(")")) {
    if (!macro.parameters.empty()) BATON_RETURN_IF_ERROR(Expect(","));
    if (At(")")) break;
    MacroDefinition::Parameter parameter;
    BATON_ASSIGN_OR_RETURN(parameter.name, TakeAnyName("a parameter"));
    if (TakeIf("=")) {
      BATON_ASSIGN_OR_RETURN(parameter.default_value, ParseExpression());
    } else if (!macro.parameters.empty() && macro.parameters.back().default_value != nullptr) {
      return Unexpected("'=', because the previous parameter has a default");
    }
    macro.parameters.push_back(std::move(parameter));
  }
  BATON_RETURN_IF_ERROR(Expect(")"));
  const int loops = std::exchange(loops_, 0);  // a macro body cannot break a loop around the definition
  EnterScope(macro.parameters);
  absl::StatusOr<Block> body = ParseBody("endmacro");
  LeaveScope(macro.parameters);
  loops_ = loops;
  BATON_RETURN_IF_ERROR(body.status());
  macro.body = *std::move(body);
  return macro;
}

}  // namespace baton::jinja
