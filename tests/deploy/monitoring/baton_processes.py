# SPDX-License-Identifier: Apache-2.0
"""Processes of Baton and a Prometheus that scrapes them, on the loopback, for one test."""

import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import yaml

SECRET = "a secret of the tests, long enough"
MODEL = pathlib.Path(__file__).resolve().parents[3] / "models" / "demo-chat"

claims = []  # sockets that hold this test's ports: see FreePort() of tests/integration/cluster.cc


def free_port():
    while True:
        port = random.randrange(12000, 31000)
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            claim.bind(f"\0baton-test-port-{port}")
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            claim.close()
            continue
        claims.append(claim)
        return port


class Processes:
    """Starts programs that log into `folder`. No program outlives stop(), or this test if it is killed."""

    def __init__(self, binaries, folder):
        self.binaries, self.folder = pathlib.Path(binaries), pathlib.Path(folder)
        self.running, self.metrics = {}, {}

    def start(self, name, *command, **environment):
        with open(self.folder / f"{name}.log", "wb") as log:
            self.running[name] = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *command], stdout=log,
                                                  stderr=log, stdin=subprocess.DEVNULL, env={**os.environ, **environment})

    def start_baton(self, name, role, *options):
        """Starts baton-<role> and returns the address of its gRPC server."""
        address, metrics = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self.metrics[name] = metrics
        self.start(name, str(self.binaries / f"baton-{role}"), f"--listen={address}", f"--metrics-listen={metrics}",
                   "--drain-timeout=1s", *options, BATON_SECRET=SECRET)
        return address

    def start_worker(self, name, role):
        """Starts a worker that computes nothing. A step takes 10 ms on every machine."""
        handoffs = [f"--handoff-listen=127.0.0.1:{free_port()}"] if role == "decode" else []
        return self.start_baton(name, role, f"--model={MODEL}", f"--worker-id={name}", "--device=replay", "--threads=1",
                                "--kv-memory=32MiB", *handoffs)

    def running_sequences(self, worker):
        with urllib.request.urlopen(f"http://{self.metrics[worker]}/metrics", timeout=10) as page:
            return float(re.search(r"^baton_worker_running_sequences{.*} (.*)$", page.read().decode(), re.MULTILINE)[1])

    def kill(self, name):
        self.running[name].send_signal(signal.SIGKILL)
        self.running[name].wait()

    def stop(self):
        for process in self.running.values():
            process.kill()
        for process in self.running.values():
            process.wait()

    def log_of(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]


class Prometheus:
    """A Prometheus that scrapes and evaluates every second. `targets`: name of a job -> addresses."""

    def __init__(self, processes, targets, rules):
        self.address = f"127.0.0.1:{free_port()}"
        folder = processes.folder
        config = folder / "prometheus.yaml"
        config.write_text(yaml.safe_dump({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "scrape_configs": [{"job_name": job, "static_configs": [{"targets": addresses}]}
                               for job, addresses in targets.items()]}))
        processes.start("prometheus", "prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}",
                        f"--web.listen-address={self.address}", "--log.level=warn")

    def get(self, path, **parameters):
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def query(self, expression):
        return self.get("query", query=expression)["result"]

    def query_range(self, expression, start, end):
        return self.get("query_range", query=expression, start=start, end=end, step=1)["result"]

    def wait_until_up(self, count, limit=30):
        end = time.monotonic() + limit
        while time.monotonic() < end:
            try:
                if len(self.query("up == 1")) == count:
                    return
            except OSError:
                pass
            time.sleep(0.2)
        raise AssertionError(f"Prometheus does not see {count} processes within {limit} s")
