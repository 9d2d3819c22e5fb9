# SPDX-License-Identifier: Apache-2.0
"""Manual pages of the programs, in the macros of man(7)."""

from programs import PROGRAMS, SERVERS

SECTIONS = {program: 8 if program in SERVERS else 1 for program in PROGRAMS}

SERVER_TEXT = """\
.SH CONFIGURATION
.B \\-\\-config
reads options from a YAML file.
A key is the name of an option without its dashes.
An option with a dot is a key of a group:
.B \\-\\-log.level
is
.B level
in the group
.BR log .
A list of values is a list in YAML.
The command line wins over the file.
.SH SIGNALS
.TP
.B SIGTERM\\fR, \\fBSIGINT
The process takes no new requests, waits for those that run (\\fB\\-\\-drain\\-timeout\\fR), and ends.
A second signal ends the process at once.
.SH EXIT STATUS
0 after a signal, 1 after an error, which the last line of the standard error names.
"""
WORKER_TEXT = """\
.SH ENVIRONMENT
.TP
.B BATON_SECRET
The secret that all workers share, without
.BR \\-\\-secret\\-file .
"""
CLIENT_TEXT = """\
.SH EXIT STATUS
.TP
.B 0
Success.
.TP
.B 1
An error.
.TP
.B 2
A wrong command line.
.TP
.B 130
Ctrl-C.
"""


def escape(text):
    """Text of a line: no backslash, dash or first character means anything to the formatter."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in text.split("\n"))


def tag(option):
    names = ", ".join(f"\\fB{escape(name)}\\fR" for name in option.names)
    if option.is_positional or not option.takes_value:
        return names
    return f"{names} \\fI{escape(option.type)}\\fR"


def sentence(text):
    return text if text.endswith((".", "?")) else text + "."


def notes(option):
    if option.required:
        yield "Required."
    if option.needs:
        yield f"Needs {', '.join(option.needs)}."
    if option.excludes:
        yield f"Excludes {', '.join(option.excludes)}."


def option_entry(option):
    help_text = option.help
    if option.default and "(default:" not in help_text:
        help_text += f" (default: {option.default})"
    return [".TP", tag(option), *(escape(text) for text in (sentence(help_text), *notes(option)))]


def synopsis(command):
    if command.commands:
        return ["\\fICOMMAND\\fR ..."]
    return ["[\\fIOPTIONS\\fR]", *(f"\\fI{escape(option.names[0])}\\fR" for option in command.options if option.is_positional)]


def command_entry(command):
    lines = [f".SS {escape(command.path)}", escape(command.help), ".PP",
             f"\\fB{escape(command.path)}\\fR {' '.join(synopsis(command))}"]
    for group in command.groups:
        shown = [option for option in group.options if "--help" not in option.names]
        if group.name != "Options" and shown:
            lines += [".PP", escape(sentence(group.name))]
        lines += [line for option in shown for line in option_entry(option)]
    if command.footer:
        lines.append(".PP")
        lines += [line for text in command.footer.split("\n") for line in (escape(text), ".br")][:-1]
    return lines


def page(program, version, date):
    others = [name for name in PROGRAMS if name != program.path]
    lines = [f'.TH {escape(program.path.upper())} {SECTIONS[program.path]} "{date}" "Baton {version}" "Baton"',
             ".SH NAME", f"{escape(program.path)} \\- {escape(program.help.rstrip('.'))}",
             ".SH SYNOPSIS", f"\\fB{escape(program.path)}\\fR {' '.join(synopsis(program))}",
             ".SH DESCRIPTION", escape(program.help),
             "Baton serves large language models with prefill and decode on separate workers.",
             ".SH OPTIONS"]
    lines += [line for option in program.options for line in option_entry(option)]
    if program.commands:
        lines.append(".SH COMMANDS")
        lines.append("Every command has the option \\fB\\-\\-help\\fR.")
        for command in list(program.walk())[1:]:
            if not command.commands:
                lines += command_entry(command)
    texts = [CLIENT_TEXT] if program.path == "baton" else [SERVER_TEXT]
    if program.path in ("baton-prefill", "baton-decode"):
        texts.append(WORKER_TEXT)
    lines += [text.rstrip("\n") for text in texts]
    lines.append(".SH SEE ALSO")
    lines += [f".BR {escape(name)} ({SECTIONS[name]}){'' if name == others[-1] else ','}" for name in others]
    return "\n".join(lines) + "\n"
