# SPDX-License-Identifier: Apache-2.0
"""Chat templates as Python's jinja2 renders them: the reference for `text/jinja`. Needs Debian's python3-jinja2.

What a template may use beside plain Jinja is what models' templates expect: blocks that leave no blank lines, `break` and
`continue`, `tojson` without HTML escapes, `raise_exception(message)`, `strftime_now(format)`, and `{% generation %}`,
which marks the assistant's text for training and prints its body.
"""

import copy
import datetime
import json

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

# The day that golden prompts are rendered on.
GOLDEN_DAY = datetime.datetime(2024, 7, 26)

TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city.", "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "description": "The city's name."},
                                         "days": {"type": "integer", "enum": [1, 2, 3]}}, "required": ["city"]}}},
    {"type": "function", "function": {"name": "now", "description": "The time.",
                                      "parameters": {"type": "object", "properties": {}}}}]
CALL = {"id": "abcdef123", "type": "function",
        "function": {"name": "get_weather", "arguments": {"city": 'Ulm "x" é', "days": 2}}}


class GenerationTag(Extension):
    """`{% generation %}` to `{% endgeneration %}`: the body, in a scope of its own."""

    tags = {"generation"}

    def parse(self, parser):
        tag = parser.stream.expect("name:generation")
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=tag.lineno)


class ChatTemplate:
    """A template, parsed. `day` stands for now."""

    def __init__(self, text, day=None):
        self.day = day
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", GenerationTag])
        environment.filters["tojson"] = self._to_json
        environment.globals.update(raise_exception=self._raise, strftime_now=self._format_now)
        self.template = environment.from_string(text)

    def render(self, messages, tools=None, **values):
        """The prompt. Raises whatever the template raises: TemplateError with the message of raise_exception."""
        inputs = {"add_generation_prompt": True, "documents": None, **values}
        return self.template.render(messages=messages, tools=tools, **inputs)

    def _format_now(self, form):
        return (self.day or datetime.datetime.now()).strftime(form)

    @staticmethod
    def _raise(message):
        raise TemplateError(message)

    @staticmethod
    def _to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def message(role, content, **fields):
    return {"role": role, "content": content, **fields}


def user(text):
    return message("user", text)


def assistant(text, **fields):
    return message("assistant", text, **fields)


def result(text):
    return message("tool", text, tool_call_id=CALL["id"], name="get_weather")


def with_arguments_as_text(messages):
    """The same messages, with each call's arguments as their JSON text: some templates were made for that form."""
    messages = copy.deepcopy(messages)
    for call in (call for m in messages for call in m.get("tool_calls", [])):
        arguments = call["function"]["arguments"]
        call["function"]["arguments"] = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    return messages
