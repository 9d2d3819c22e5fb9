#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A router, two prefill and two decode workers serve a load, and the busier decode worker is killed. A Prometheus then has
data for every query of the dashboards and for every rule.

BATON_BIN names the folder with the built programs."""

import json
import math
import os
import re
import subprocess
import tempfile
import time
import unittest

import yaml

from baton_processes import Processes, Prometheus
from documented import DASHBOARDS, RULES, SELECTOR

BINARIES = os.environ["BATON_BIN"]
WORKERS = {"prefill-0": "prefill", "prefill-1": "prefill", "decode-0": "decode", "decode-1": "decode"}
SECONDS_OF_LOAD = 16
RATE = 5  # requests per second

# The variables of the dashboards.
VARIABLES = {"$namespace": ".*", "$model": ".*", "$pool": ".*", "$__rate_interval": "15s"}
# Series that a run without the event does not have.
ABSENT = {'baton_attempts_total{outcome="overloaded"}': "no worker refuses an attempt"}
# What the death of a worker may and may not raise.
RAISED = {"BatonProcessDown", "BatonWorkerLost"}
MAY_RAISE = RAISED | {"BatonQuarantineStuck", "BatonTransferFailures",  # the death cut a handoff off
                      "BatonSloBurn", "BatonQueueSaturated"}  # the machine is slow


def substituted(expression):
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


def is_finite(series):
    return all(math.isfinite(float(value)) for _, value in series.get("values", [series.get("value")]))


def panel_queries():
    for path in sorted(DASHBOARDS.glob("*.json")):
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
            for target in panel.get("targets", []):
                yield f"{path.stem}/{panel['title']}", target


class LiveMetricsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.enterClassContext(folder := tempfile.TemporaryDirectory(prefix="baton-live-metrics."))
        cls.processes = Processes(BINARIES, folder.name)
        cls.addClassCleanup(cls.processes.stop)
        addresses = [cls.processes.start_worker(name, role) for name, role in WORKERS.items()]
        cls.router = cls.processes.start_baton("router", "router", f"--workers={','.join(addresses)}")
        targets = {}
        for name, address in cls.processes.metrics.items():
            targets.setdefault(f"baton-{name.split('-', maxsplit=1)[0]}", []).append(address)
        cls.start = time.time()
        cls.prometheus = Prometheus(cls.processes, targets, RULES)
        cls.run_load()

    @classmethod
    def run_load(cls):
        baton = cls.processes.binaries / "baton"
        status = subprocess.run([baton, "status", "--target", cls.router, "--wait", "30s"], capture_output=True, text=True,
                                check=False)
        if status.returncode != 0:
            raise AssertionError(f"not ready: {status.stdout}{status.stderr}{cls.processes.log_of('router')}")
        cls.prometheus.wait_until_up(len(WORKERS) + 1)
        time.sleep(3)  # idle processes: a rate is 0, and a careless quotient NaN
        load = subprocess.Popen([baton, "bench", "serve", "--target", cls.router, f"--rate={RATE}",
                                 f"--requests={RATE * SECONDS_OF_LOAD}", "--prompt-tokens=96", "--output-tokens=160",
                                 "--timeout=60s", "--json"], stdout=subprocess.PIPE, text=True)
        time.sleep(SECONDS_OF_LOAD / 2)
        busier = max(("decode-0", "decode-1"), key=cls.processes.running_sequences)
        cls.processes.kill(busier)
        cls.report = json.loads(load.communicate(timeout=90)[0])
        time.sleep(3)  # the last scrapes and evaluations
        cls.end = time.time()

    def test_every_query_of_a_panel_has_data(self):
        count = 0
        for where, target in panel_queries():
            query = substituted(target["expr"])
            with self.subTest(where, query=query):
                if target["instant"]:
                    found = self.prometheus.query(query)
                else:
                    found = self.prometheus.query_range(query, self.start, self.end)
                self.assertTrue(found, "no series")
                for series in found:
                    self.assertTrue(is_finite(series), f"NaN or infinite: {series}")
                    if "none" not in series["metric"].values():
                        self.assertLessEqual(set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])), set(series["metric"]))
                count += 1
        self.assertGreater(count, 80)

    def test_queries_of_variables_have_values(self):
        for metric, label in re.findall(r"label_values\((\w+), (\w+)\)", (DASHBOARDS / "overview.json").read_text()):
            values = self.prometheus.get(f"label/{label}/values", **{"match[]": metric})
            # Only Kubernetes has namespaces.
            self.assertEqual(bool(values), label != "namespace", label)

    def test_every_rule_evaluates(self):
        groups = self.prometheus.get("rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        written = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
        self.assertEqual(len(rules), len(written))
        for rule in rules:
            self.assertEqual((rule["health"], rule.get("lastError", "")), ("ok", ""), rule["name"])

    def test_recorded_series_have_data(self):
        for rule in yaml.safe_load(RULES.read_text())["groups"]:
            for record in {r["record"] for r in rule["rules"] if "record" in r}:
                found = self.prometheus.query_range(record, self.start, self.end)
                self.assertTrue(found, record)
                for series in found:
                    self.assertTrue(is_finite(series), f"NaN or infinite: {record} {series}")
        for slo in ("ttft", "tpot", "answered"):
            self.assertTrue(self.prometheus.query(f'baton:slo_missed:ratio_rate3d{{slo="{slo}", model="demo-chat"}}'), slo)

    def test_what_alerts_read_has_data(self):
        """When all is well an alert's expression is empty. The series that the expression reads are there."""
        read = set()
        for group in yaml.safe_load(RULES.read_text())["groups"]:
            for rule in group["rules"]:
                expression = re.sub(r"#.*", "", rule["expr"])
                read |= {f"{name}{{{matchers}}}" for name, matchers in SELECTOR.findall(expression)}
                read |= set(re.findall(r"\b(?:baton_|baton:)[\w:]+(?![\w:{])", expression))
        self.assertGreater(len(read), 20)
        self.assertLessEqual(set(ABSENT), read)
        for selector in sorted(read - set(ABSENT)):
            self.assertTrue(self.prometheus.query(f"count(last_over_time({selector}[2m]))"), selector)

    def test_the_death_of_a_worker_raises_its_alerts_and_no_others(self):
        raised = {alert["labels"]["alertname"] for alert in self.prometheus.get("alerts")["alerts"]}
        self.assertLessEqual(RAISED, raised)
        self.assertLessEqual(raised, MAY_RAISE)

    def test_the_load_met_the_death(self):
        self.assertGreater(self.report["requests"], 0, self.report)
        lost = self.prometheus.query('sum(baton_attempts_total{outcome=~"decode_lost|peer_lost"})')
        self.assertGreater(float(lost[0]["value"][1]), 0)
        self.assertTrue(self.prometheus.query("baton_pause_seconds_count > 0"))


if __name__ == "__main__":
    unittest.main()
