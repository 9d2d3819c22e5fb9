# SPDX-License-Identifier: Apache-2.0
"""Shell completions of a program (programs.Command) for bash, zsh and fish."""


def identifier(path):
    return "_" + path.replace(" ", "_").replace("-", "_")


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def named(options):
    return [option for option in options if not option.is_positional]


def with_value(command):
    return [(f"{command.path} {name}", option) for option in named(command.options) if option.takes_value
            for name in option.names]


def patterns(words):
    return " | ".join(quoted(word) for word in words)


def bash(program):
    function = identifier(program.path)
    nested = [command.path for command in program.walk()][1:]
    lines = [
        f"# bash completion for {program.path}",
        f"{function}() {{",
        "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} "
        f"command={program.path} words= word",
        "  # Bash splits --name=value into three words.",
        "  if [[ $current == = ]]; then",
        "    current=",
        "  elif [[ $previous == = ]]; then",
        "    previous=${COMP_WORDS[COMP_CWORD - 2]}",
        "  fi",
    ]
    if nested:
        lines += [
            '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
            '    case "$command $word" in',
            f'      {patterns(nested)}) command+=" $word" ;;',
            "    esac",
            "  done",
        ]
    lines.append('  case "$command $previous" in')
    free = []
    for command in program.walk():
        for where, option in with_value(command):
            if option.choices:
                lines.append(f"    {quoted(where)}) words={quoted(' '.join(option.choices))} ;;")
            else:
                free.append(where)
    lines += [f"    {patterns(free)}) return ;; # files, by the option default of complete", "    *)",
              "      case $command in"]
    for command in program.walk():
        words = [child.name for child in command.commands]
        words += [name for option in named(command.options) for name in option.names]
        lines.append(f"        {quoted(command.path)}) words={quoted(' '.join(words))} ;;")
    lines += ["      esac", "      ;;", "  esac", "  # shellcheck disable=SC2207  # no word has spaces",
              '  COMPREPLY=($(compgen -W "$words" -- "$current"))', "}",
              f"complete -o default -F {function} {program.path}", ""]
    return "\n".join(lines)


def zsh_text(text):
    for character in "\\[]:":
        text = text.replace(character, "\\" + character)
    return text


def zsh_option(option):
    spec = ""
    if option.takes_value:
        action = f"({' '.join(option.choices)})" if option.choices else "_files" if option.may_be_path else ""
        spec = f":{zsh_text(option.type)}:{action}" if not option.choices else f":value:{action}"
    if option.is_positional:
        return [quoted(f":{zsh_text(option.help)}:_files")]
    repeat = "*" if option.type.endswith("...") else ""
    equals = "=" if option.takes_value else ""
    return [quoted(f"{repeat}{name}{equals if name.startswith('--') else ''}[{zsh_text(option.help)}]{spec}")
            for name in option.names]


def zsh_function(command):
    specs = [spec for option in command.options for spec in zsh_option(option)]
    if not command.commands:
        body = " \\\n    ".join(["  _arguments", *specs])
        return f"{identifier(command.path)}() {{\n{body}\n}}\n"
    children = " ".join(f'{child.name}\\:"{zsh_text(child.help)}"' for child in command.commands)
    specs += [quoted(f"1:command:(({children}))"), quoted("*::argument:->rest")]
    body = " \\\n    ".join(["  _arguments -C", *specs])
    cases = "\n".join(f"    {child.name}) {identifier(child.path)} ;;" for child in command.commands)
    return (f"{identifier(command.path)}() {{\n  local context state line\n  typeset -A opt_args\n{body} && return\n"
            f"  case $line[1] in\n{cases}\n  esac\n}}\n")


def zsh(program):
    functions = "\n".join(zsh_function(command) for command in program.walk())
    return f'#compdef {program.path}\n\n{functions}\n{identifier(program.path)} "$@"\n'


def fish_option(start, option):
    parts = [start]
    for name in option.names:
        parts.append(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}")
    if option.choices:
        parts.append(f"-x -a {quoted(' '.join(option.choices))}")
    elif option.takes_value:
        parts.append("-r -F" if option.may_be_path else "-x")
    return " ".join([*parts, "-d", fish_quoted(option.help)])


def fish_quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish(program):
    at = "_" + identifier(program.path) + "_at"
    nested = [command.path for command in program.walk()][1:]
    lines = [f"# fish completion for {program.path}"]
    if nested:
        lines += [
            f"function {at}",
            f"    set -l command {program.path}",
            "    for word in (commandline -opc)[2..-1]",
            '        switch "$command $word"',
            f"            case {' '.join(quoted(path) for path in nested)}",
            '                set command "$command $word"',
            "        end",
            "    end",
            '    test "$command" = "$argv"',
            "end",
        ]
    lines.append(f"complete -c {program.path} -f")
    for command in program.walk():
        condition = f" -n {quoted(f'{at} {command.path}')}" if nested else ""
        start = f"complete -c {program.path}{condition}"
        lines += [f"{start} -a {child.name} -d {fish_quoted(child.help)}" for child in command.commands]
        if any(option.is_positional for option in command.options):
            lines.append(f"{start} -F")
        lines += [fish_option(start, option) for option in named(command.options)]
    return "\n".join([*lines, ""])
