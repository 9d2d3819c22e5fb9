# SPDX-License-Identifier: Apache-2.0
"""Makes mutants of a C++ source: copies with one small change each, by operators that are well known in the field.

The source is read as text that clang-format has laid out: functions begin at the start of a line, binary operators have
a space on either side, and brackets of templates have none.
"""

import dataclasses
import hashlib
import re

OPERATORS = {
    "condition": "negate the condition of an if or a while",
    "call": "delete a statement that is a call",
    "assignment": "delete an assignment",
    "comparison": "swap < and <=, > and >=, == and !=",
    "logic": "swap && and ||",
    "arithmetic": "swap + and -, += and -=, ++ and --",
    "literal": "swap true and false",
    "bound": "swap std::min and std::max",
    "return": "return a constant at the start of a function",
}

SWAPS = {
    "comparison": {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == "},
    "logic": {" && ": " || ", " || ": " && "},
    "arithmetic": {" + ": " - ", " - ": " + ", " += ": " -= ", " -= ": " += ", "++": "--", "--": "++"},
    "literal": {"true": "false", "false": "true"},
    "bound": {"std::min": "std::max", "std::max": "std::min"},
}

# What can stand at the start of a statement that is neither a call nor an assignment.
KEYWORDS = re.compile(r"(if|for|while|switch|do|else|case|default|break|continue|using|const|constexpr|static|auto)\b")
ASSIGNMENT = re.compile(r"([^\s=]+ (=|\+=|-=|\|=) .*|(\+\+|--)[^\s]+)", re.DOTALL)
CALL = re.compile(r"[\w:.\->\[\]*]+(<[\w:]+>)?\(.*\)", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Mutant:
    file: str
    line: int
    function: str
    operator: str
    before: str  # the code that changes, on one line
    after: str
    start: int  # what is replaced, as offsets into the source
    end: int
    text: str  # what takes its place
    number: int = 1  # among those of the function with the same `before` and `after`

    def key(self):
        """Names the mutant for as long as its function's code stays, wherever the function moves to."""
        which = f" #{self.number}" if self.number > 1 else ""
        return f"{self.file}: {self.function}{which}: {self.before} -> {self.after}"

    def rank(self, seed):
        """The order in which a sample takes mutants: a change elsewhere in the source does not change it."""
        return hashlib.sha256(f"{seed}/{self.key()}".encode()).hexdigest()

    def apply(self, source):
        return source[: self.start] + self.text + source[self.end :]


COMMENT = r"//[^\n]*|/\*.*?\*/"
LITERAL = r'R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
# A literal is matched so that what looks like a comment in it is none.
NO_CODE = re.compile(rf"(?P<comment>{COMMENT})|(?P<directive>^#[^\n]*)|(?P<literal>{LITERAL})",
                     re.DOTALL | re.MULTILINE)


def blank(source, kinds):
    """The source with spaces in the place of what is of these kinds, and lines that end where they did."""

    def replace(match):
        if match.lastgroup not in kinds:
            return match.group()
        if match.lastgroup == "literal":
            return match.group()[0] + re.sub(r"[^\n]", "x", match.group()[1:-1]) + match.group()[-1]
        return re.sub(r"[^\n]", " ", match.group())

    return NO_CODE.sub(replace, source)


def mask(source):
    """The source without comments, preprocessor lines and the content of literals; all else is where it was."""
    return blank(source, ("comment", "directive", "literal"))


def closing(masked, start):
    """The offset of the bracket that closes the one at `start`."""
    depth = 0
    for at in range(start, len(masked)):
        if masked[at] in "([{":
            depth += 1
        elif masked[at] in ")]}":
            depth -= 1
            if depth == 0:
                return at
    raise ValueError(f"no bracket closes the one at offset {start}")


def functions(masked):
    """(name, return type, start of the body, its end) of each function defined at the start of a line."""
    header = re.compile(r"^(?!namespace|struct|class|enum|using|constexpr|template)([\w:<>,&*\[\] ]*?)\b([\w:~]+)\(",
                        re.MULTILINE)
    at = 0
    while match := header.search(masked, at):
        at = match.end()
        after = closing(masked, match.end() - 1) + 1
        # A definition goes on with qualifiers, or a constructor's initializers, and a body.
        body = re.compile(r"(\s*(const|noexcept|override))*\s*\{").match(masked, after)
        if not body:
            continue
        end = closing(masked, body.end() - 1)
        yield match.group(2), match.group(1).strip(), body.end(), end
        at = end


def statements(masked, start, end):
    """(start, end) of each statement in a body that ends with a semicolon, without it."""
    begin = start
    at = start
    while at < end:
        character = masked[at]
        if character in "([":
            close = closing(masked, at)
            # Lambdas have bodies of their own.
            for brace in re.finditer(r"\{", masked[at:close]):
                inner = at + brace.start()
                if re.search(r"[;{]", masked[inner + 1 : closing(masked, inner)]):
                    yield from statements(masked, inner + 1, closing(masked, inner))
                    break
            at = close + 1
            head = r"\s*(?:else\s+)?(?:if|for|while|switch)( constexpr)?\s*\(.*\)"
            if re.fullmatch(head, masked[begin:at], re.DOTALL):
                begin = at
            continue
        if character in "{}":
            begin = at + 1
        elif character == ";":
            yield begin, at
            begin = at + 1
        elif character == ":" and re.fullmatch(r"\s*(case [\w:]+|default)", masked[begin:at]):
            if masked[at + 1] != ":" and masked[at - 1] != ":":
                begin = at + 1
        elif masked.startswith("else", at) and not masked[begin:at].strip():
            begin = at + 4
            at += 3
        at += 1


def one_line(text):
    return re.sub(r"\s+", " ", text).strip()


class Maker:
    def __init__(self, file, source):
        self.file = file
        self.source = source
        self.masked = mask(source)
        self.readable = blank(source, ("comment",))
        self.found = {}  # by key
        self.logs = [range(m.start(), closing(self.masked, m.end() - 1)) for m in re.finditer(r"\bLog\(", self.masked)]

    def add(self, function, operator, start, end, text, shown=None):
        """`shown` is the stretch of code that a reader is shown. Calls of Log stay: no unit test reads a log."""
        if any(start in log for log in self.logs):
            return
        shown_start, shown_end = shown or (start, end)
        before = one_line(self.readable[shown_start:shown_end])
        after = one_line(self.readable[shown_start:start] + text + self.readable[end:shown_end])
        line = self.source.count("\n", 0, start) + 1
        number = 1
        mutant = Mutant(self.file, line, function, operator, before, after, start, end, text)
        while mutant.key() in self.found:
            number += 1
            mutant = dataclasses.replace(mutant, number=number)
        self.found[mutant.key()] = mutant

    def line_of(self, at):
        start = self.source.rfind("\n", 0, at) + 1
        end = self.source.find("\n", at)
        return start, end

    def conditions(self, function, start, end):
        for match in re.finditer(r"\b(?:if|while) \(", self.masked[start:end]):
            opening = start + match.end() - 1
            close = closing(self.masked, opening)
            # if (declaration; condition), if (declaration)
            semicolon = self.masked.rfind(";", opening, close)
            first = semicolon + 1 if semicolon >= 0 else opening + 1
            condition = self.readable[first:close].strip()
            if re.fullmatch(r"((?! && | \|\| ).)* [!=]= ((?! && | \|\| ).)*", condition, re.DOTALL):
                continue  # swapping == and != does the same
            declared = re.match(r"[^()]*[\s*&](\w+) = ", self.masked[first:close])
            if declared:
                text = f"{condition}; !({declared.group(1)})"
            else:
                text = f" !({condition})" if semicolon >= 0 else f"!({condition})"
            self.add(function, "condition", first, close, text, (start + match.start(), close + 1))

    def deletions(self, function, result, start, end):
        for first, last in statements(self.masked, start, end):
            code = self.masked[first:last]
            first += len(code) - len(code.lstrip())
            code = code.strip()
            if not code or KEYWORDS.match(code):
                continue
            if code.startswith("return "):
                if result == "void" and CALL.fullmatch(code[7:]):
                    self.add(function, "call", first, last, "return", (first, last + 1))
            elif ASSIGNMENT.fullmatch(code):
                self.add(function, "assignment", first, last, "", (first, last + 1))
            elif CALL.fullmatch(code):
                self.add(function, "call", first, last, "", (first, last + 1))

    def swaps(self, function, start, end):
        for operator, pairs in SWAPS.items():
            alternatives = "|".join(re.escape(text) for text in sorted(pairs, key=len, reverse=True))
            pattern = rf"\b(?:{alternatives})\b" if operator in ("literal", "bound") else alternatives
            for match in re.finditer(pattern, self.masked[start:end]):
                at = start + match.start()
                self.add(function, operator, at, start + match.end(), pairs[match.group()], self.line_of(at))

    def returns(self, function, result, start):
        if result == "" or "~" in function:
            return  # a constructor or destructor
        values = {"void": [""], "bool": [" true", " false"]}.get(result, [" {}"])
        for value in values:
            self.add(function, "return", start, start, f" return{value};", (start - 1, start))

    def make(self):
        for function, result, start, end in functions(self.masked):
            self.returns(function, result, start)
            self.conditions(function, start, end)
            self.deletions(function, result, start, end)
            self.swaps(function, start, end)
        return list(self.found.values())


def make(file, source):
    """All mutants of a source, in no particular order, each with a key of its own."""
    return Maker(file, source).make()
