#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Dockerfile, the scripts that it runs, the list of Debian packages, and the flags that compiled the programs."""

import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import dockerfile

ROOT = dockerfile.ROOT
BIN = pathlib.Path(os.environ["BATON_BIN"])
FOLDER = dockerfile.FILE.parent
sys.path.insert(0, str(ROOT / "deploy" / "reference"))
import programs  # noqa: E402


def output(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, timeout=60).stdout


def ignored(path):
    """.dockerignore leaves the file, or a folder above it, out."""
    patterns = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    parts = pathlib.Path(path).parts
    heads = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return any(fnmatch.fnmatch(head, pattern.replace("**/", "*")) for head in heads for pattern in patterns)


class DockerfileTest(unittest.TestCase):
    def test_the_bases_are_arguments_before_the_first_stage(self):
        names = [name for name, _ in dockerfile.instructions()]
        self.assertEqual(names[:3], ["ARG", "ARG", "FROM"])
        self.assertEqual(dockerfile.arguments("ARG")[:2], ["BUILD_BASE=debian:12", "RUNTIME_BASE=debian:12-slim"])
        self.assertEqual(dockerfile.arguments("FROM"), ["${BUILD_BASE} AS build", "${RUNTIME_BASE}"])
        # A label reads an argument of its own stage.
        last_stage = [name for name, _ in dockerfile.instructions()[len(names) - names[::-1].index("FROM"):]]
        self.assertLess(last_stage.index("ARG"), last_stage.index("LABEL"))
        declared = {argument.split("=")[0] for argument in dockerfile.arguments("ARG")}
        self.assertLessEqual(set(re.findall(r"\$\{(\w+)\}", dockerfile.FILE.read_text())), declared)

    def test_every_script_is_in_the_context_and_has_the_right_form(self):
        sources = [words.split()[0] for words in dockerfile.arguments("COPY")]
        sources += re.findall(r"--mount=type=bind,source=([^, ]+)", dockerfile.FILE.read_text())
        sources += re.findall(r"/src/(\S+)", dockerfile.FILE.read_text())
        self.assertIn("deploy/docker/build.sh", sources)
        self.assertIn("deploy/docker/runtime.sh", sources)
        helpers = ["deploy/docker/stage.sh", "deploy/docker/runtime_packages.py", "deploy/packages/sbom.py", "deploy/lib.sh",
                   "deploy/packages.txt", "deploy/reference/make.py", "models/demo-chat/config.json", "LICENSE"]
        for source in [*sources, *helpers]:
            self.assertTrue((ROOT / source).exists(), source)
            self.assertFalse(source != "." and ignored(source), source)
        self.assertTrue(ignored("build/release/bin/baton"))
        for script in FOLDER.glob("*.sh"):
            first = script.read_text().splitlines()[0]
            subprocess.run(["sh" if first == "#!/bin/sh" else "bash", "-n", script], check=True, timeout=10)
            self.assertTrue(os.access(script, os.X_OK), script)

    def test_the_image_runs_a_program_without_rights_and_without_a_shell(self):
        self.assertEqual(dockerfile.arguments("USER"), ["65532:65532"])
        self.assertIn("x:65532:65532:", (FOLDER / "runtime.sh").read_text())
        self.assertEqual(dockerfile.arguments("ENTRYPOINT"), [])
        self.assertEqual(dockerfile.arguments("STOPSIGNAL"), ["SIGTERM"])
        [command] = dockerfile.arguments("CMD")
        self.assertEqual(json.loads(command)[0], "baton-router")
        [labels] = dockerfile.arguments("LABEL")
        self.assertIn("org.opencontainers.image.licenses=", labels)
        version = output(BIN / "baton", "--version").split()[1]
        self.assertIn(f"VERSION={version}", dockerfile.arguments("ARG"))

    def test_the_program_knows_the_health_check(self):
        program, name, *words = dockerfile.health_command()
        [command] = [child for child in programs.describe(BIN / program).commands if child.name == name]
        known = {text: option for option in command.options for text in option.names}
        while words:
            option = known[words.pop(0)]
            if option.takes_value:
                words.pop(0)

    def test_ports_are_those_of_the_programs(self):
        defaults = set()
        for program in programs.SERVERS:
            for option in programs.describe(BIN / program).options:
                if option.names[0].endswith("listen") and ":" in option.default_text:
                    defaults.add(option.default_text.rpartition(":")[2])
        [ports] = dockerfile.arguments("EXPOSE")
        self.assertEqual(set(ports.split()), defaults)


class PackagesTest(unittest.TestCase):
    def test_the_build_stage_installs_the_compiler_of_the_preset_and_no_tests(self):
        line = re.search(r"sed '(.*)' \"\$root/deploy/packages.txt\"", (FOLDER / "build.sh").read_text())[1]
        names = output("sed", line, ROOT / "deploy/packages.txt").split()
        presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
        [compiler] = {preset["cacheVariables"]["CMAKE_CXX_COMPILER"] for preset in presets if preset["name"] == "base"}
        self.assertLessEqual({compiler.replace("++", ""), "cmake", "ninja-build", "python3", "libgrpc++-dev"}, set(names))
        self.assertFalse({"libgtest-dev", "prometheus", "npm"} & set(names))

    def test_the_runtime_packages_have_every_library(self):
        """The dynamic sections of all files name libraries. ldd and dpkg -S, which make the list, take no part here."""
        binaries = [BIN / program for program in programs.PROGRAMS]
        packages = output("/usr/bin/python3", FOLDER / "runtime_packages.py", *binaries).split()
        self.assertIn("libucx0", packages)
        files = {pathlib.Path(line).name: line for line in output("dpkg", "-L", *packages).splitlines() if ".so" in line}
        modules = [path for name, path in files.items() if re.fullmatch(r"libuct_\w+\.so\.0", name)]
        self.assertTrue(modules)
        waiting, seen = [str(path) for path in [*binaries, *modules]], set()
        while waiting:
            needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", *waiting))) - seen
            self.assertLessEqual(needed, set(files))
            seen |= needed
            waiting = [files[name] for name in sorted(needed)]
        self.assertGreater(len(seen), 50)

    def test_a_base_without_a_package_fails_with_a_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            tool = pathlib.Path(folder) / "apt-get"
            tool.write_text('#!/bin/sh\n[ "$1" != install ]\n')
            tool.chmod(0o755)
            (pathlib.Path(folder) / "runtime-packages.txt").write_text("libucx0\n")
            run = subprocess.run(["sh", FOLDER / "runtime.sh", folder], capture_output=True, text=True, check=False, timeout=10,
                                 env={"PATH": f"{folder}:/usr/bin:/bin"})
        self.assertEqual(run.returncode, 1)
        self.assertIn("expected Debian 12", run.stderr)


class CompilerTest(unittest.TestCase):
    def test_no_file_is_compiled_for_the_building_machine_alone(self):
        commands = json.loads((BIN.parent / "compile_commands.json").read_text())
        self.assertGreater(len(commands), 20)
        for command in commands:
            self.assertNotRegex(command["command"], r"-m(arch|tune|cpu)=native", command["file"])


if __name__ == "__main__":
    unittest.main()
