#!/usr/bin/env python3
"""Refuses phrases that make a reader guess, in comments, logs and documents.

words.py [FILE...]: prints FILE:LINE: PHRASE for each hit and exits with 1 if there is any. Without files it reads every
source file and document. CONTRIBUTING.md says what to write instead.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUFFIXES = {".cc", ".h", ".def", ".proto", ".md", ".py", ".sh", ".cmake", ".txt"}
SKIPPED = ("tests/words.py", "models/", "tests/golden/", "LICENSE", "NOTICE")

# Each phrase hides its subject, or has a plain word of the field beside it.
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
]
# A comment that begins with one of these has no subject.
OPENINGS = r"(Likewise|Whatever|Whoever|Whose|Beside|Past|Those)\b"
PATTERN = re.compile("|".join(PHRASES), re.IGNORECASE)
OPENING = re.compile(r"^\s*(?://|#)\s*" + OPENINGS)
COMMENT_LINE = re.compile(r"^\s*(?://|#)")


def our_files():
    """Tracked files, or outside of a git checkout all files except build folders."""
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = listing.stdout.splitlines() or [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file()]
    skipped = (*SKIPPED, "build/", ".git/")
    return [n for n in names if pathlib.Path(n).suffix in SUFFIXES and not n.startswith(skipped) and (ROOT / n).exists()]


def hits(name):
    previous_is_comment = False
    for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
        for match in PATTERN.finditer(line):
            yield f"{name}:{number}: \"{match.group()}\""
        if not previous_is_comment and (match := OPENING.match(line)):
            yield f"{name}:{number}: a comment that begins with \"{match.group(1)}\""
        previous_is_comment = bool(COMMENT_LINE.match(line))


def main():
    found = [hit for name in sys.argv[1:] or our_files() for hit in hits(name)]
    print("\n".join(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
