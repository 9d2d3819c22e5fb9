#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes chat_templates/expected.json: what Python's jinja2 (chat_reference.py) renders for conversations.

A row has the template's file, the inputs, and `expected`, the prompt, or `error`, what the template raised. The day is
26 July 2024. Usage: make_chat_templates.py [output file]; make_chat_templates.py --check FOLDER renders the rows of
another folder's expected.json, and compares.
"""

import json
import sys
from pathlib import Path

from jinja2 import TemplateError

from chat_reference import CALL, GOLDEN_DAY, TOOLS, ChatTemplate, assistant, message, result, user

FOLDER = Path(__file__).parent / "chat_templates"

# template -> its begin and end tokens
TEMPLATES = {
    "Qwen2.5-7B-Instruct.jinja": ("", "<|im_end|>"),
    "Mistral-Nemo-Instruct-2407.jinja": ("<s>", "</s>"),
    "Phi-3.5-mini-instruct.jinja": ("<s>", "<|endoftext|>"),
    "everything.jinja": ("<s>", "</s>"),
}

# (messages, tools)
CONVERSATIONS = [
    ([user("Which way is north?")], None),
    ([message("system", "Answer in one word."), user("Which way is north?")], None),
    ([user("One"), assistant("Two"), user("Three, naïve – 東京 🎉\nand a \"quote\" & <tag>")], None),
    ([message("system", " \tkeep my spaces\n "), user("  x "), assistant(" y\n"), user("{{ braces }} {% tag %} {# note #}")], None),
    ([user("a"), user("b")], None),
    ([assistant("I begin"), user("b")], None),
    ([user("")], None),
    ([message("system", "one"), message("system", "two"), user("u")], None),
    ([message("oracle", "what role is this?")], None),
    ([user(f"turn {i}") if i % 2 == 0 else assistant(f"turn {i}") for i in range(9)], None),
    ([user("Weather in Ulm?")], TOOLS),
    ([message("system", "Use tools."), user("Weather in Ulm?"), assistant("", tool_calls=[CALL]), result('{"t": 3}')], TOOLS),
    ([user("Weather?"), assistant("", tool_calls=[CALL]), result("3"), assistant("3 degrees."), user("Thanks")], TOOLS),
    ([user("Weather?"), assistant("", tool_calls=[{**CALL, "id": "short"}]), result("3")], TOOLS),
]


def render(template, row):
    try:
        prompt = template.render(row["messages"], row.get("tools"), bos_token=row["bos_token"], eos_token=row["eos_token"],
                                 add_generation_prompt=row["add_generation_prompt"])
        return {"expected": prompt}
    except TemplateError as error:
        return {"error": error.message}


def check(folder):
    rows = json.loads((folder / "expected.json").read_text())
    templates = {name: ChatTemplate((folder / name).read_text(), GOLDEN_DAY) for name in {row["template"] for row in rows}}
    different = [i for i, row in enumerate(rows)
                 if any(row.get(key) != value for key, value in render(templates[row["template"]], row).items())]
    print(f"{folder}: {len(rows)} rows, different: {different or 'none'}")
    return 1 if different else 0


def main():
    if sys.argv[1:2] == ["--check"]:
        return check(Path(sys.argv[2]))
    rows = []
    for name, (bos, eos) in TEMPLATES.items():
        template = ChatTemplate((FOLDER / name).read_text(), GOLDEN_DAY)
        for messages, tools in CONVERSATIONS:
            for add_generation_prompt in (True, False):
                row = {"template": name, "messages": messages, **({"tools": tools} if tools else {}),
                       "add_generation_prompt": add_generation_prompt, "bos_token": bos, "eos_token": eos}
                rows.append({**row, **render(template, row)})
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER / "expected.json"
    path.write_text("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
