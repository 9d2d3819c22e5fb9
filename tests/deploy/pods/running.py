# SPDX-License-Identifier: Apache-2.0
"""One run of a container: its processes, its probes, and its end."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

import probes

LAUNCHER = ["/usr/bin/python3", str(pathlib.Path(__file__).resolve().parent / "container.py")]


class Running:
    """Starts at once. `manifest`: the container's. `spec`: for container.py. `log`: a file to append to."""

    def __init__(self, manifest, spec, log, address, pace, note):
        if "lifecycle" in manifest:
            raise NotImplementedError("hooks are not run")
        self.manifest, self.spec, self.log, self.address, self.pace, self.note = manifest, spec, log, address, pace, note
        self.ready_since = None
        self.watches = {}
        self.lock = threading.Lock()
        self.killing = False
        read_end, write_end = os.pipe()
        with open(log, "ab") as output:
            self.process = subprocess.Popen([*LAUNCHER, json.dumps({**spec, "pid_to": write_end})], stdout=output,
                                            stderr=output, stdin=subprocess.DEVNULL, pass_fds=[write_end])
        os.close(write_end)
        with open(read_end, encoding="ascii") as pipe:
            self.pid = int(pipe.readline() or 0)  # 0: the container could not start

    # Probes.

    def watch_probes(self):
        if "startupProbe" in self.manifest:
            self.watch("startupProbe", self.startup_changed)
        else:
            self.startup_changed(True)

    def watch(self, kind, changed):
        with self.lock:
            if not self.killing:
                self.watches[kind] = probes.Watch(self.manifest[kind], self, changed, self.pace)

    def startup_changed(self, passed):
        if not passed:
            return self.fail("startupProbe")
        if "startupProbe" in self.watches:
            self.watches["startupProbe"].stop()
        if "readinessProbe" in self.manifest:
            self.watch("readinessProbe", self.readiness_changed)
        else:
            self.readiness_changed(True)
        if "livenessProbe" in self.manifest:
            self.watch("livenessProbe", lambda passed: None if passed else self.fail("livenessProbe"))
        return None

    def readiness_changed(self, passed):
        self.ready_since = time.monotonic() if passed else None

    def fail(self, kind):
        """Kills the container, which the pod may start again."""
        self.note(f"{kind} failed")
        grace = self.manifest[kind].get("terminationGracePeriodSeconds", self.spec["grace_seconds"])
        threading.Thread(target=self.end, args=[grace], daemon=True).start()

    def stop_watches(self, kinds=("startupProbe", "readinessProbe", "livenessProbe")):
        with self.lock:
            self.killing = True
            for kind in kinds:
                if kind in self.watches:
                    self.watches[kind].stop()

    def ready_for(self, seconds):
        """Whether the container has been ready for so long."""
        since = self.ready_since
        return since is not None and time.monotonic() - since >= seconds and self.process.poll() is None

    # What probes need.

    def port(self, name):
        """The number of a port, by name or number."""
        return {each["name"]: each["containerPort"] for each in self.manifest.get("ports", [])}.get(name, name)

    def run(self, command, timeout):
        """Runs a command in the container, and returns its status. A command that takes too long is killed."""
        spec = {**self.spec, "join": self.pid, "command": command}
        with open(self.log, "ab") as output:
            try:
                return subprocess.run([*LAUNCHER, json.dumps(spec)], stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                                      timeout=timeout, check=False).returncode
            except subprocess.TimeoutExpired:
                return None

    # The end.

    def send(self, number):
        if self.pid and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # ended just now
                os.kill(self.pid, number)

    def wait(self, timeout=None):
        """The exit status as the kubelet shows the status: 128 more than the signal that killed the container."""
        status = self.process.wait(timeout)
        self.stop_watches()
        return status

    def end(self, grace):
        """SIGTERM, and after `grace` seconds SIGKILL."""
        self.stop_watches(("startupProbe", "livenessProbe"))
        self.send(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(grace / self.pace)
        if self.process.poll() is None:
            self.note(f"killed after the grace period of {grace} s")
            self.send(signal.SIGKILL)
