#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders conversations with every *.jinja of a folder, by `baton render` and by Python's jinja2 (chat_reference.py).

compare_templates.py BATON FOLDER. One letter per conversation: '.' the same text, 'e' both fail, 'r' refused because the
template does not look at something, 'D' different (shown with --show). Exits with 1 if any differ.
"""

import argparse
import collections
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from chat_reference import CALL, TOOLS, ChatTemplate, assistant, message, result, user, with_arguments_as_text

DEMO_MODEL = pathlib.Path(__file__).parents[2] / "models/demo-chat"
SPECIAL_TOKENS = {"bos_token": "<|begin_of_text|>", "eos_token": "<|end|>"}
OUTCOMES = {".": "same", "e": "both fail", "r": "refused", "D": "different"}

# (messages, tools, template arguments)
CONVERSATIONS = [
    ([user("Hello")], None, {}),
    ([message("system", "Be brief."), user(" Hi  there\n")], None, {}),
    ([user("a"), assistant("<think>\nx\n</think>\n\nb"), user("c")], None, {}),
    ([user("a"), assistant("b", reasoning_content="because"), user("c")], None, {}),
    ([user("Weather?")], TOOLS, {}),
    ([message("system", "S"), user("Weather?"), assistant("", tool_calls=[CALL]), result('{"t": 3}')], TOOLS, {}),
    ([user("Weather?"), assistant(None, tool_calls=[CALL]), result('{"t": 3}'), assistant("3."), user("Thanks")], TOOLS, {}),
    ([user("Hello")], None, {"enable_thinking": False}),
    ([user("Hello")], None, {"add_generation_prompt": False}),
    ([user("日本 🎉 <b>&\"'")], None, {}),
]


class Baton:
    """`baton render` over the demo model with another template."""

    def __init__(self, program, model):
        self.program = program
        self.model = model
        shutil.copy(DEMO_MODEL / "tokenizer.json", model)
        (model / "tokenizer_config.json").write_text(json.dumps(SPECIAL_TOKENS))

    def use(self, template):
        (self.model / "chat_template.jinja").write_text(template)

    def render(self, messages, tools, arguments):
        """The prompt and None, or None and the error."""
        conversation = self.model / "conversation.json"
        conversation.write_text(json.dumps({"messages": messages, "tools": tools, "chat_template_kwargs": arguments or None}))
        run = subprocess.run([self.program, "render", "--model", self.model, "--messages", conversation],
                             capture_output=True, text=True, check=False)
        return (run.stdout, None) if run.returncode == 0 else (None, run.stderr)


def prompt_of(template, messages, tools, arguments):
    """The prompt, or None when the template fails, in whatever way."""
    try:
        return template.render(messages, tools, **{**SPECIAL_TOKENS, **arguments})
    except Exception:  # pylint: disable=broad-except
        return None


def compare(baton, template, conversation, show):
    messages, tools, arguments = conversation
    wanted = prompt_of(template, messages, tools, arguments)
    got, error = baton.render(messages, tools, arguments)
    if error is not None and "does not look at" in error:
        return "r"
    if error is not None and wanted is None:
        return "e"
    if got is not None and got in (wanted, prompt_of(template, with_arguments_as_text(messages), tools, arguments)):
        return "."
    if show:
        print("wanted", repr(wanted), "\ngot   ", repr(error if got is None else got))
    return "D"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("baton")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        baton = Baton(args.baton, pathlib.Path(folder))
        for path in sorted(args.folder.glob("*.jinja")):
            text = path.read_text()
            baton.use(text)
            template = ChatTemplate(text)
            letters = "".join(compare(baton, template, c, args.show) for c in CONVERSATIONS)
            print(f"{path.name:60} {letters}", flush=True)
            counts.update(letters)
    print(", ".join(f"{name} {counts[letter]}" for letter, name in OUTCOMES.items()))
    return 1 if counts["D"] or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
