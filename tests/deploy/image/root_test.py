#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The runtime root of this build, without a container engine: the staged files and the libraries of the listed packages.

Commands of deploy/docker/compose.yaml start there and stream an answer. The test needs root; without root, the test is
skipped. The test runs in its own namespaces, which end with the test and take processes and mounts along.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import compose
import container
import dockerfile

ROOT = compose.ROOT
sys.path.insert(0, str(ROOT / "deploy" / "packages"))
import sbom  # noqa: E402

SKIPPED = 77
NAMESPACES = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
INSIDE = "BATON_IN_NAMESPACES"
SERVICES = ("prefill-0", "decode-0", "router")
ENVIRONMENT = {"PATH": "/usr/bin", "BATON_SECRET": "a secret of the tests, long enough"}


def assemble(folder):
    """Makes folder/root."""
    build = pathlib.Path(os.environ["BATON_BIN"]).parent
    subprocess.run([ROOT / "deploy/docker/stage.sh", build, folder], check=True, timeout=60)
    root = folder / "root"
    listed = (folder / "runtime-packages.txt").read_text().split()
    for link in ("lib", "lib64"):
        (root / "usr" / link).mkdir()
        (root / link).symlink_to(f"usr/{link}")
    for library in sbom.loaded_by(sorted((root / "usr/bin").iterdir())):
        [owner] = sbom.packages_of([library])
        if owner.split(":")[0] in listed:
            copy = root / library.lstrip("/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, copy)
    for name in ("etc", "dev", "proc", "sys"):
        (root / name).mkdir()
    for device in ("null", "urandom"):
        (root / "dev" / device).touch()
    (root / "etc/passwd").write_text("baton:x:65532:65532::/nonexistent:/usr/sbin/nologin\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost prefill prefill-0 decode decode-0\n")
    (root / "etc/resolv.conf").touch()
    return root


class RootTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.folder.chmod(0o755)
        cls.root = assemble(cls.folder)
        cls.addClassCleanup(subprocess.run, ["umount", "--recursive", str(cls.root)], check=False)
        container.mount_root(cls.root)
        container.bring_loopback_up()

    def run_to_end(self, *command, status=0):
        process = container.start(self.root, command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=ENVIRONMENT)
        self.addCleanup(process.kill)
        text, _ = process.communicate(timeout=45)
        self.assertEqual(process.returncode, status, f"{command}: {text}{self.logs()}")
        return text

    def logs(self):
        return "\n".join(path.read_text()[-2000:] for path in sorted(self.folder.glob("*.log")))

    def test_the_services_answer_and_drain(self):
        services, running = compose.baton_services(), {}
        for name in SERVICES:
            with open(self.folder / f"{name}.log", "wb") as log:
                running[name] = container.start(self.root, services[name]["command"], stdout=log, stderr=log, env=ENVIRONMENT)
            self.addCleanup(running[name].wait)
            self.addCleanup(running[name].kill)
        self.run_to_end("baton", "status", "--wait", "30s")
        self.run_to_end(*dockerfile.health_command())
        answer = self.run_to_end("baton", "generate", "--chat", "What does Baton do?", "--temperature", "0")
        self.assertIn("prefill", answer.lower())

        none = "0" * 16
        for process in running.values():
            self.assertEqual(container.rights(process), {"Uid": str(container.USER), "CapInh": none, "CapPrm": none,
                                                         "CapEff": none, "CapBnd": none, "NoNewPrivs": "1"})
        self.assertRaises(OSError, (self.root / "etc/new").touch)
        for name in reversed(SERVICES):
            running[name].terminate()
            self.assertEqual(running[name].wait(timeout=20), 0, self.logs())
        self.run_to_end(*dockerfile.health_command(), status=1)


def main():
    if INSIDE in os.environ:
        unittest.main()
    if os.geteuid() != 0 or subprocess.run([*NAMESPACES, "true"], capture_output=True, check=False).returncode != 0:
        print("skipped: image_root_test needs root and new namespaces")
        sys.exit(SKIPPED)
    command = [*NAMESPACES, sys.executable, __file__, *sys.argv[1:]]
    sys.exit(subprocess.run(command, env={**os.environ, INSIDE: "1"}, check=False).returncode)


if __name__ == "__main__":
    main()
