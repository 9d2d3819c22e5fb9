// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/oniguruma.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "text/utf8.h"

namespace baton {
namespace {

constexpr size_t kMaxPatternDepth = 100;  // for nested groups, nested classes and stacked quantifiers

constexpr std::string_view kHexDigits = "0123456789ABCDEFabcdef";
constexpr std::string_view kDecimalDigits = "0123456789";

bool IsScript(std::string_view name) {
  return name.size() > 2 && u_getPropertyValueEnum(UCHAR_SCRIPT, std::string(name).c_str()) != UCHAR_INVALID_CODE;
}

// PCRE2's \p{Han} matches Script_Extensions, which includes shared punctuation. Oniguruma's matches Script: \p{sc:Han}.
std::string TranslateProperty(std::string_view property) {
  const size_t name = property.starts_with("{^") ? 2 : 1;
  if (!IsScript(property.substr(name, property.size() - name - 1))) return std::string(property);
  return Concat(property.substr(0, name), "sc:", property.substr(name));
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : rest_(pattern) {}

  absl::StatusOr<std::string> Run() {
    while (!rest_.empty()) BATON_RETURN_IF_ERROR(TranslateNext());
    CloseOptions();
    return std::move(out_);
  }

 private:
  // An open group in `out_`. The bottom of the stack is the whole pattern.
  struct Group {
    size_t begin = 0;    // offset in `out_`
    size_t options = 0;  // open groups "(?i:" that translate "(?i)"; they close with this group
  };

  // An operand of && in a class: the union of its members.
  struct Term {
    std::string items;                // members in the syntax of a class, without brackets
    std::vector<std::string> nested;  // members that need a group, each a regular expression
  };

  struct Class {
    std::vector<Term> terms;
    bool negated;
  };

  absl::Status Unsupported(std::string_view what) const {
    return absl::UnimplementedError(Concat("a regular expression with ", what, " is not supported"));
  }

  // Consumes up to `length` bytes of the rest.
  std::string_view Take(size_t length) {
    const std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  std::string_view TakeWhile(std::string_view characters, size_t at_most) {
    return Take(std::min({rest_.find_first_not_of(characters), at_most, rest_.size()}));
  }

  std::string_view TakeCodePoint() { return Take(ReadUtf8(rest_).length); }

  bool TakeIf(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  void CloseOptions() { out_.append(groups_.back().options, ')'); }

  absl::Status TranslateNext() {
    switch (rest_[0]) {
      case '(': return OpenGroup();
      case ')':
        Take(1);
        if (groups_.size() > 1) {
          CloseOptions();
          BeginAtom(groups_.back().begin);
          groups_.pop_back();
        }
        out_ += ')';
        return absl::OkStatus();
      case '|':
        out_ += Take(1);
        atom_.reset();
        return absl::OkStatus();
      case '[': {
        BATON_ASSIGN_OR_RETURN(const Class set, TakeClass(0));
        BeginAtom(out_.size());
        out_ += Atom(set);
        return absl::OkStatus();
      }
      case '\\':
        BeginAtom(out_.size());
        out_ += TakeEscape(/*in_class=*/false);
        return absl::OkStatus();
      default: break;
    }
    if (const std::string quantifier = TakeQuantifier(); !quantifier.empty()) return Quantify(quantifier);
    BeginAtom(out_.size());
    out_ += TakeCodePoint();
    return absl::OkStatus();
  }

  void BeginAtom(size_t begin) {
    atom_ = begin;
    quantifiers_ = 0;
  }

  absl::Status OpenGroup() {
    if (groups_.size() > kMaxPatternDepth) return Unsupported(Concat("groups nested deeper than ", kMaxPatternDepth));
    if (rest_.starts_with("(*")) return Unsupported("'(*'");
    if (rest_.starts_with("(?#")) {
      TakeThrough(')');
      return absl::OkStatus();
    }
    const size_t begin = out_.size();
    atom_.reset();
    const size_t options = rest_.starts_with("(?") ? rest_.find_first_not_of("imsx-", 2) : 0;
    const bool is_option = options > 2 && options < rest_.size() && (rest_[options] == ':' || rest_[options] == ')');
    if (!is_option) {
      out_ += Take(1);
      // Copies the "?:" or "?=" of a group now, so that TranslateNext does not take the "?" for a quantifier.
      if (rest_.starts_with("?")) out_ += Take(rest_.starts_with("?(") ? 1 : 2);
      groups_.push_back({.begin = begin});
      return absl::OkStatus();
    }
    std::string letters(Take(options));
    if (letters.find('x') != std::string::npos) return Unsupported("the option x");
    std::replace(letters.begin(), letters.end(), 'm', 's');
    out_ += Concat(letters, ":");
    if (Take(1) == ":") {
      groups_.push_back({.begin = begin});
    } else if (++groups_.back().options > kMaxPatternDepth) {
      return Unsupported(Concat("more than ", kMaxPatternDepth, " options in a group"));
    }
    return absl::OkStatus();
  }

  // Consumes a quantifier (*, +, ?, {1}, {1,}, {1,2}, {,2}) with its lazy or possessive suffix. Returns "" when the
  // rest does not begin with a quantifier.
  std::string TakeQuantifier() {
    std::string quantifier;
    bool is_interval = false;
    bool is_fixed = false;
    if (rest_[0] == '{') {
      const size_t end = rest_.find_first_not_of("0123456789,", 1);
      if (end == std::string_view::npos || rest_[end] != '}') return "";
      const std::string_view bounds = rest_.substr(1, end - 1);
      const size_t comma = bounds.find(',');
      if (bounds.empty() || bounds == "," || comma != bounds.rfind(',')) return "";
      is_interval = true;
      is_fixed = comma == std::string_view::npos;
      quantifier = Concat("{", comma == 0 ? "0" : "", bounds, "}");
      Take(end + 1);
    } else if (rest_[0] == '*' || rest_[0] == '+' || rest_[0] == '?') {
      quantifier = Take(1);
    } else {
      return "";
    }
    // After an interval, + and ? are separate quantifiers. The exception is the lazy a{1,2}?.
    if (!rest_.empty() && ((rest_[0] == '?' && !is_fixed) || (rest_[0] == '+' && !is_interval))) quantifier += Take(1);
    return quantifier;
  }

  absl::Status Quantify(const std::string& quantifier) {
    if (quantifiers_++ > 0 && atom_) {
      if (quantifiers_ > kMaxPatternDepth)
        return Unsupported(Concat("more than ", kMaxPatternDepth, " stacked quantifiers"));
      out_.insert(*atom_, "(?:");
      out_ += ')';
    }
    out_ += quantifier;
    return absl::OkStatus();
  }

  // Consumes an escape with its arguments ("\p{L}", "\x{41}"), so that the result is one atom.
  std::string TakeEscape(bool in_class) {
    Take(1);
    if (rest_.empty()) return "\\";
    const std::string_view letter = TakeCodePoint();
    switch (letter[0]) {
      case 's': return "\\p{White_Space}";
      case 'S': return "\\P{White_Space}";
      case 'h': return in_class ? "0-9A-Fa-f" : "[0-9A-Fa-f]";
      case 'H': return "[^0-9A-Fa-f]";
      case 'v': return "\\x0B";
      case 'V':
      case 'Q':
      case 'E': return std::string(letter);  // no escape in Oniguruma: the letter itself
      case 'u':
        if (std::min(rest_.find_first_not_of(kHexDigits), rest_.size()) < 4) break;
        return Concat("\\x{", Take(4), "}");
      case 'p':
      case 'P': return Concat("\\", letter, rest_.starts_with("{") ? TranslateProperty(TakeThrough('}')) : "");
      case 'x': return Concat("\\x", rest_.starts_with("{") ? TakeThrough('}') : TakeWhile(kHexDigits, 2));
      case 'k':
      case 'g':
        if (in_class || rest_.empty()) break;
        return Concat("\\", letter, rest_[0] == '<' ? TakeThrough('>') : rest_[0] == '\'' ? TakeThrough('\'') : "");
      case 'c': return Concat("\\c", Take(1));
      default: break;
    }
    if (kDecimalDigits.find(letter) != std::string_view::npos)
      return Concat("\\", letter, TakeWhile(kDecimalDigits, 2));
    return Concat("\\", letter);
  }

  // Consumes the rest up to and including the next `end`, not counting the first byte.
  std::string_view TakeThrough(char end) { return Take(std::min(rest_.find(end, 1), rest_.size() - 1) + 1); }

  // Returns the length of a POSIX bracket such as [:alpha:] at the start of the rest, or 0.
  size_t PosixBracketLength() const {
    if (!rest_.starts_with("[:")) return 0;
    const size_t name = rest_.starts_with("[:^") ? 3 : 2;
    const size_t end = rest_.find_first_not_of("abcdefghijklmnopqrstuvwxyz", name);
    return end != std::string_view::npos && end > name && rest_.substr(end).starts_with(":]") ? end + 2 : 0;
  }

  absl::StatusOr<Class> TakeClass(size_t depth) {
    if (depth > kMaxPatternDepth) return Unsupported(Concat("classes nested deeper than ", kMaxPatternDepth));
    Take(1);
    Class set{.terms = std::vector<Term>(1), .negated = TakeIf("^")};
    if (TakeIf("]")) set.terms[0].items = "\\]";  // a leading ] is a member
    while (!rest_.empty() && rest_[0] != ']') {
      if (TakeIf("&&")) {
        set.terms.emplace_back();
      } else {
        BATON_RETURN_IF_ERROR(TakeItem(depth, set.terms.back()));
      }
    }
    if (!TakeIf("]")) return absl::InvalidArgumentError("expected ']' at the end of a character class");
    for (const Term& term : set.terms) {
      if (term.items.empty() && term.nested.empty()) return Unsupported("an empty class or an empty operand of &&");
    }
    return set;
  }

  absl::Status TakeItem(size_t depth, Term& term) {
    if (const size_t length = PosixBracketLength(); length > 0) {
      term.items += Take(length);
    } else if (rest_[0] == '[') {
      BATON_ASSIGN_OR_RETURN(const Class nested, TakeClass(depth + 1));
      if (nested.negated || nested.terms.size() > 1 || !nested.terms[0].nested.empty()) {
        term.nested.push_back(Atom(nested));
      } else {
        term.items += nested.terms[0].items;
      }
      if (TakeIf("-")) term.items += "\\-";  // a class cannot begin a range
    } else if (rest_.starts_with("\\H")) {
      term.nested.push_back(TakeEscape(/*in_class=*/true));
      if (TakeIf("-")) term.items += "\\-";
    } else if (rest_[0] == '\\') {
      term.items += TakeEscape(/*in_class=*/true);
    } else {
      if (NeedsEscape(term)) term.items += '\\';
      term.items += TakeCodePoint();
    }
    return absl::OkStatus();
  }

  // Returns whether the next character is literal in Oniguruma but special at its new place in a PCRE2 class.
  bool NeedsEscape(const Term& term) const {
    const bool is_first = term.items.empty();
    if (rest_[0] == '-') {
      const std::string_view next = rest_.substr(1);
      return is_first || next.starts_with("[") || next.starts_with("]") || next.starts_with("&&");
    }
    return is_first && std::string_view("^:.=").find(rest_[0]) != std::string_view::npos;
  }

  static std::string Atom(const Class& set) {
    const std::vector<Term>& terms = set.terms;
    if (terms.size() == 1 && terms[0].nested.empty()) return Concat(set.negated ? "[^" : "[", terms[0].items, "]");
    if (terms.size() == 1 && !set.negated) return UnionOf(terms[0]);
    std::string atom;
    for (size_t i = 1; i < terms.size(); ++i) atom += Concat("(?=", UnionOf(terms[i]), ")");
    atom += UnionOf(terms[0]);
    return set.negated ? Concat("(?:(?!", atom, ")(?s:.))") : Concat("(?:", atom, ")");
  }

  static std::string UnionOf(const Term& term) {
    std::vector<std::string> alternatives = term.nested;
    if (!term.items.empty()) alternatives.insert(alternatives.begin(), Concat("[", term.items, "]"));
    return alternatives.size() == 1 ? alternatives[0] : Concat("(?:", absl::StrJoin(alternatives, "|"), ")");
  }

  std::string_view rest_;
  std::string out_;
  std::vector<Group> groups_ = std::vector<Group>(1);
  std::optional<size_t> atom_;  // offset in `out_` of the last atom with its quantifiers
  size_t quantifiers_ = 0;      // quantifiers on the last atom
};

}  // namespace

absl::StatusOr<std::string> PcreFromOniguruma(std::string_view pattern) { return Translator(pattern).Run(); }

}  // namespace baton
