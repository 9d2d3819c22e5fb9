#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian packages of a build: contents, units, SBOM, and an answer from the unpacked files."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ["BATON_BIN"]).parent
sys.path.insert(0, str(ROOT / "tests" / "deploy" / "monitoring"))
import baton_processes  # noqa: E402

SERVERS = ("baton-router", "baton-prefill", "baton-decode")
# Of 100; a unit without any restriction has 96.
MOST_EXPOSURE = 20


def output(*command, **options):
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=100, **options)
    if run.returncode:
        raise AssertionError(f"{command}: {run.stdout}{run.stderr}")
    return run.stdout


class PackagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.root = cls.folder / "root"
        output("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", cls.folder)
        cls.packages = {path.name.split("_")[0]: path for path in cls.folder.glob("*.deb")}
        for package in cls.packages.values():
            output("dpkg-deb", "-x", package, cls.root)

    def field(self, package, field):
        return output("dpkg-deb", "-f", self.packages[package], field).strip()

    def test_two_packages_depend_on_what_their_programs_link(self):
        self.assertEqual(set(self.packages), {"baton-server", "baton-client"})
        depends = {name: re.findall(r"[\w.+-]+(?= \(|,|$)", self.field(name, "Depends")) for name in self.packages}
        self.assertIn("libucx0", depends["baton-server"])
        self.assertNotIn("libucx0", depends["baton-client"])
        self.assertIn("libedit2", depends["baton-client"])
        self.assertEqual(output("dpkg-deb", "-I", self.packages["baton-server"], "conffiles").split(),
                         [f"/etc/baton/{name}.yaml" for name in ("router", "prefill-0", "decode-0")])

    def test_each_program_is_stripped_and_has_its_manual_and_completions(self):
        for program in ("baton", *SERVERS):
            binary = self.root / "usr/bin" / program
            self.assertRegex(output(binary, "--version"), rf"^{program} {self.field('baton-client', 'Version')}\n$")
            self.assertNotIn(".debug_info", output("readelf", "-SW", binary), program)
            section = 8 if program in SERVERS else 1
            for file in (f"man/man{section}/{program}.{section}.gz", f"bash-completion/completions/{program}",
                         f"zsh/vendor-completions/_{program}", f"fish/vendor_completions.d/{program}.fish"):
                self.assertTrue((self.root / "usr/share" / file).is_file(), file)
        for file in ("usr/share/baton/proto/baton/v1/inference.proto", "usr/share/baton/models/demo-chat/config.json"):
            self.assertTrue((self.root / file).is_file(), file)

    def test_the_units_are_right_and_give_few_rights(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("systemd-analyze is not installed")
        units = sorted((self.root / "usr/lib/systemd/system").iterdir())
        self.assertEqual(len(units), 3)
        for unit in units:
            instance = unit.with_name(unit.name.replace("@", "@0"))
            copy = self.folder / instance.name
            text = unit.read_text()
            copy.write_text(text.replace("/usr/bin/baton", f"{self.root}/usr/bin/baton"))
            run = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True, check=False)
            problems = [line for line in run.stderr.splitlines() if "baton" in line]
            self.assertEqual((run.returncode, problems), (0, []), unit.name)
            output("systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSURE}", copy)
            self.assertGreater(int(re.search(r"TimeoutStopSec=(\d+)s", text)[1]), 30, "the default of --drain-timeout")

    def test_the_sbom_names_what_is_linked(self):
        for component, needed in (("server", {"libucx0", "libibverbs1", "libgrpc++1.51"}), ("client", {"libedit2"})):
            path = self.root / f"usr/share/doc/baton-{component}/sbom.spdx.json"
            document = json.loads(path.read_text())
            self.assertEqual((document["spdxVersion"], document["dataLicense"]), ("SPDX-2.3", "CC0-1.0"))
            self.assertRegex(document["creationInfo"]["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
            ids = [package["SPDXID"] for package in document["packages"]]
            self.assertEqual(len(ids), len(set(ids)))
            for package in document["packages"]:
                for field in ("name", "SPDXID", "versionInfo", "downloadLocation", "licenseDeclared"):
                    self.assertTrue(package[field], package)
            for relation in document["relationships"][1:]:
                self.assertIn(relation["relatedSpdxElement"], ids)
            names = {package["name"] for package in document["packages"]}
            # A dependency without a version is a virtual package.
            depends = set(re.findall(r"[\w.+-]+(?= \()", self.field(f"baton-{component}", "Depends")))
            self.assertLessEqual(needed | depends, names)

    def test_the_unpacked_files_answer_a_request(self):
        processes = baton_processes.Processes(self.root / "usr/bin", self.folder)
        self.addCleanup(processes.stop)

        def config(name):
            """The installed file; the model is below the unpacked root."""
            text = (self.root / "etc/baton" / f"{name}.yaml").read_text()
            path = self.folder / f"{name}.yaml"
            path.write_text(text.replace("/usr/share", f"{self.root}/usr/share"))
            return f"--config={path}"

        decode_handoff = f"--handoff-listen=127.0.0.1:{baton_processes.free_port()}"
        prefill = processes.start_baton("prefill", "prefill", config("prefill-0"), "--threads=1")
        decode = processes.start_baton("decode", "decode", config("decode-0"), "--threads=1", decode_handoff)
        router = processes.start_baton("router", "router", config("router"), f"--workers={prefill},{decode}")
        baton = self.root / "usr/bin/baton"
        output(baton, "status", "--target", router, "--wait", "30s")
        answer = output(baton, "generate", "--target", router, "--chat", "What does Baton do?", "--temperature", "0")
        self.assertIn("prefill", answer.lower())


if __name__ == "__main__":
    unittest.main()
