#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of Prometheus: promtool accepts and tests them, they name what exists, and each alert has a runbook and two
tests: one case in which it fires, one in which it does not."""

import pathlib
import re
import subprocess
import unittest

import yaml

from documented import ROOT, RULES, SCRAPED, Documented, errors

TESTS = sorted(pathlib.Path(__file__).with_name("rules").glob("*.test.yaml"))


def promtool(*arguments):
    run = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


class RulesTest(unittest.TestCase):
    def setUp(self):
        self.rules = [rule for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]
        self.alerts = [rule for rule in self.rules if "alert" in rule]
        self.assertGreater(len(self.alerts), 10)

    def test_promtool_accepts_the_files(self):
        for command in (("rules", RULES), ("config", RULES.with_name("prometheus.yaml"))):
            status, text = promtool("check", *command)
            self.assertEqual(status, 0, text)

    def test_alerts_fire_when_they_should(self):
        status, text = promtool("test", "rules", *TESTS)
        self.assertEqual(status, 0, text)

    def test_every_alert_is_tested_both_ways(self):
        fires, quiet = set(), set()
        for path in TESTS:
            for case in yaml.safe_load(path.read_text(encoding="utf-8"))["tests"]:
                for test in case.get("alert_rule_test", []):
                    (fires if test["exp_alerts"] else quiet).add(test["alertname"])
        names = {alert["alert"] for alert in self.alerts}
        self.assertEqual((fires, quiet), (names, names))

    def test_rules_name_what_exists(self):
        documented = Documented()
        for rule in self.rules:
            if "record" in rule:
                documented.add(rule["record"], SCRAPED | {"model", "slo"})
        for rule in self.rules:
            self.assertEqual(errors(rule["expr"], documented), [], rule["expr"])

    def test_a_window_has_one_length(self):
        """A recorded ratio's name has the window of its expression."""
        recorded = {match[1]: rule["expr"] for rule in self.rules
                    if (match := re.fullmatch(r"baton:slo_missed:ratio_rate(\w+)", rule.get("record", "")))}
        self.assertEqual(sorted(recorded), sorted(["5m", "30m", "1h", "2h", "6h", "1d", "3d"]))
        for window, expression in recorded.items():
            self.assertEqual(set(re.findall(r"\[(\w+)\]", expression)), {window})

    def test_an_integer_boundary_fits_prometheus_2_and_3(self):
        for rule in self.rules:
            for operator, value in re.findall(r'\ble(=~?)"([^"]*)"', rule["expr"]):
                if "." not in value or "|" in value:
                    whole = value.split("|")[0]
                    self.assertEqual((operator, value), ("=~", rf"{whole}|{whole}\\.0"))

    def test_every_alert_says_what_to_do(self):
        text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
        anchors = {re.sub(r"[^\w\- ]", "", line.lstrip("# ")).lower().replace(" ", "-")
                   for line in text.splitlines() if line.startswith("#")}
        for alert in self.alerts:
            notes = alert["annotations"]
            self.assertEqual(set(notes), {"summary", "description", "runbook_url"}, alert["alert"])
            self.assertIn(alert["labels"]["severity"], ("page", "ticket"))
            self.assertEqual(notes["runbook_url"], f"docs/operations.md#{alert['alert'].lower()}")
            self.assertIn(alert["alert"].lower(), anchors)
            if not alert["expr"].startswith("absent("):
                self.assertIn("$value", notes["description"], alert["alert"])
        self.assertEqual({anchor for anchor in anchors if anchor.startswith("baton")},
                         {alert["alert"].lower() for alert in self.alerts})


if __name__ == "__main__":
    unittest.main()
