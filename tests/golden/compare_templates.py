#!/usr/bin/env python3
"""Renders conversations with every *.jinja of a folder, by `baton render` and by Python's jinja2 set up as Hugging Face does.

compare_templates.py BATON FOLDER, with Debian's python3-jinja2. One letter per conversation: '.' the same text, 'e' both
fail, 'r' refused because the template does not look at something, 'D' different (shown with --show). Exits with 1 if any differ.
"""
import argparse
import copy
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

BOS, EOS = "<|begin_of_text|>", "<|end|>"
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city.", "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "description": "The city's name."},
                                         "days": {"type": "integer", "enum": [1, 2, 3]}}, "required": ["city"]}}},
    {"type": "function", "function": {"name": "now", "description": "The time.",
                                      "parameters": {"type": "object", "properties": {}}}}]
CALL = {"id": "abcdef123", "type": "function",
        "function": {"name": "get_weather", "arguments": {"city": 'Ulm "x" é', "days": 2}}}
RESULT = {"role": "tool", "tool_call_id": "abcdef123", "name": "get_weather", "content": '{"t": 3}'}


def user(text):
    return {"role": "user", "content": text}


def called(content):
    return {"role": "assistant", "content": content, "tool_calls": [CALL]}


# (messages, tools, template arguments)
CONVERSATIONS = [
    ([user("Hello")], None, {}),
    ([{"role": "system", "content": "Be brief."}, user(" Hi  there\n")], None, {}),
    ([user("a"), {"role": "assistant", "content": "<think>\nx\n</think>\n\nb"}, user("c")], None, {}),
    ([user("a"), {"role": "assistant", "content": "b", "reasoning_content": "because"}, user("c")], None, {}),
    ([user("Weather?")], TOOLS, {}),
    ([{"role": "system", "content": "S"}, user("Weather?"), called(""), RESULT], TOOLS, {}),
    ([user("Weather?"), called(None), RESULT, {"role": "assistant", "content": "3."}, user("Thanks")], TOOLS, {}),
    ([user("Hello")], None, {"enable_thinking": False}),
    ([user("Hello")], None, {"add_generation_prompt": False}),
    ([user("日本 🎉 <b>&\"'")], None, {}),
]


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_write"), [], [], body).set_lineno(line)

    def _write(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[jinja2.ext.loopcontrols, Generation])
    env.filters["tojson"] = lambda x, ensure_ascii=False, indent=None, separators=None, sort_keys=False: json.dumps(
        x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: __import__("datetime").datetime.now().strftime(form)
    return env


def expected(template, messages, tools, arguments):
    """The prompt, or None when the template fails."""
    values = {"add_generation_prompt": True, "documents": None, "bos_token": BOS, "eos_token": EOS, **arguments}
    try:
        return template.render(messages=messages, tools=tools, **values)
    except Exception:  # pylint: disable=broad-except  # whatever a template does
        return None


def with_arguments_as_text(messages):
    messages = copy.deepcopy(messages)
    for message in messages:
        for call in message.get("tool_calls", []):
            function = call["function"]
            function["arguments"] = json.dumps(function["arguments"], ensure_ascii=False, separators=(",", ":"))
    return messages


def compare(baton, model, template, conversation, show):
    messages, tools, arguments = conversation
    path = model / "conversation.json"
    path.write_text(json.dumps({"messages": messages, "tools": tools, "chat_template_kwargs": arguments or None}))
    run = subprocess.run([baton, "render", "--model", model, "--messages", path], capture_output=True, check=False)
    want = expected(template, messages, tools, arguments)
    if run.returncode != 0:
        error = run.stderr.decode()
        if "does not look at" in error:
            return "r"
        if want is None:
            return "e"
    elif run.stdout.decode() in (want, expected(template, with_arguments_as_text(messages), tools, arguments)):
        return "."
    if show:
        print("wanted", repr(want), "\ngot   ", repr((run.stdout + run.stderr).decode()))
    return "D"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("baton")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    demo = pathlib.Path(__file__).parents[2] / "models/demo-chat"
    env = environment()
    letters = ""
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder)
        shutil.copy(demo / "tokenizer.json", model)
        (model / "tokenizer_config.json").write_text(json.dumps({"bos_token": BOS, "eos_token": EOS}))
        for path in sorted(args.folder.glob("*.jinja")):
            shutil.copy(path, model / "chat_template.jinja")
            template = env.from_string(path.read_text())
            found = "".join(compare(args.baton, model, template, c, args.show) for c in CONVERSATIONS)
            print(f"{path.name:60} {found}", flush=True)
            letters += found
    print(f"same {letters.count('.')}, both fail {letters.count('e')}, refused {letters.count('r')}, "
          f"different {letters.count('D')}")
    sys.exit(1 if "D" in letters else 0)


if __name__ == "__main__":
    main()
