#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Refuses sentences that make a reader guess, in comments, logs and documents.

words.py [FILE...]: prints FILE:LINE: REASON for each hit and exits with 1 if there is any. Without files, words.py reads
every source file and document. CONTRIBUTING.md says how to write instead.

  - Everywhere: phrases that hide their subject, or have a plain word of the field beside them.
  - In comments of C++ and in documents, except for UNREAD: a sentence that begins with a bare pronoun, or is far too long.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUFFIXES = {".cc", ".h", ".def", ".proto", ".md", ".py", ".sh", ".cmake", ".txt"}
SKIPPED = ("tests/words.py", "models/", "tests/golden/", "LICENSE", "NOTICE")
# Files whose sentences are not checked.
UNREAD = ("CHANGELOG.md", "proto/grpc/")

PHRASES = [
    r"\bso many of\b",
    r"\bwhoever\b",
    r"\bsomebody\b",
    r"\blikewise\b",
    r"\bto be had\b",
    r"\b(that|this|the other|the last|the first) one's\b",
    r"\bgives? (it|them) back\b",
    r"\blets? go of\b",
    r"\bspeaks? of\b",
    r"\bhas a say\b",
    r"\bfor ever\b",
    r"\bno more than that\b",
    r"\bof (it|them) (there|here) (is|are)\b",
    r"\b(is|are) there (twice|already)\b",
    r"\bholds? (nobody|others|no one) up\b",
    r"\bwithout a word of\b",
    r"\bhas had its (time|say)\b",
    r"\bwhat came of (it|them)\b",
    r"\bholds? up nobody\b",
    r"\bthe (one|ones) (before|behind|after) it\b",
]
PATTERN = re.compile("|".join(PHRASES), re.IGNORECASE)

VERB = r"(is|are|was|were|has|have|can|cannot|may|must|need|do|does|would|will|should|also|then|only|comes?|goes?|ends?)\b"
BARE = re.compile(
    r"(?P<word>(It|They|Those|What|Whatever|Whose|Whoever|Likewise|Beside|Past)\b"
    rf"|(That|This|These|Both|One|Others|Some|Neither|Either|None|All)\s+{VERB}"
    r"|One\s+(of them|that|which|more|fewer)\b)")
MAX_WORDS = 30  # an aim is 20; a sentence of more than 30 is always two

# A sentence ends before a capital, a quoted name, or an identifier.
SENTENCE_END = re.compile(r"(?<=[.?!])\)?\s+(?=[A-Z`\"(*]|k[A-Z]|[a-z]+[_/.(:])")
COMMENT = re.compile(r"^\s*// ?(.*)$")
TRAILING = re.compile(r"[;{},)]\s+// (.*)$")
TABLE_ROW = re.compile(r"\S {2,}\S")
LIST_ITEM = re.compile(r"^(-|\*|\d+\.)\s+")


def our_files():
    """Tracked files, or outside of a git checkout all files except build folders."""
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = listing.stdout.splitlines() or [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file()]
    skipped = (*SKIPPED, "build/", ".git/")
    return [n for n in names if pathlib.Path(n).suffix in SUFFIXES and not n.startswith(skipped) and (ROOT / n).exists()]


def comment_pieces(lines):
    """(line number, text) of comments: whole lines join, an indented line or a trailing comment stands alone."""
    for number, line in enumerate(lines, 1):
        if match := COMMENT.match(line):
            text = match[1]
            alone = text.startswith("  ") or TABLE_ROW.search(text) or LIST_ITEM.match(text)
            yield number, "" if text.startswith(("---", "NOLINT", "SPDX-")) else text.strip(), alone
        elif match := TRAILING.search(line):
            yield number, match[1], True
            yield number, "", True
        else:
            yield number, "", True


def document_pieces(lines):
    """The same for Markdown, without code and headings. Each cell of a table stands alone."""
    in_code = False
    for number, line in enumerate(lines, 1):
        if line.startswith("```"):
            in_code = not in_code
        if in_code or line.startswith(("```", "#")):
            yield number, "", True
        elif line.startswith("|"):
            for cell in line.strip("|").split(" | "):
                yield number, cell.strip(), True
        else:
            text = line.strip()
            yield number, LIST_ITEM.sub("", text), bool(LIST_ITEM.match(text))


def sentences(pieces):
    """(line number of the paragraph, sentence)."""
    start, words = 0, []
    for number, text, alone in [*pieces, (0, "", True)]:
        if (alone or not text) and words:
            for sentence in SENTENCE_END.split(" ".join(words)):
                yield start, sentence
            words = []
        if text:
            start = start if words else number
            words.append(text)


def hits(name):
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        for match in PATTERN.finditer(line):
            yield f"{name}:{number}: \"{match.group()}\""
    suffix = pathlib.Path(name).suffix
    if name.startswith(UNREAD) or suffix not in {".cc", ".h", ".def", ".proto", ".md"}:
        return
    for number, sentence in sentences(document_pieces(lines) if suffix == ".md" else comment_pieces(lines)):
        if match := BARE.match(sentence):
            yield f"{name}:{number}: a sentence that begins with \"{match['word']}\""
        if (count := len(sentence.split())) > MAX_WORDS:
            yield f"{name}:{number}: {count} words in \"{sentence[:60]}...\""


def main():
    found = [hit for name in sys.argv[1:] or our_files() for hit in hits(name)]
    print("\n".join(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
