#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The dashboards: their JSON is the one that make_dashboards.py writes, every query parses, and names what exists."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import jsonschema
import yaml

from documented import DASHBOARDS, RULES, SCRAPED, Documented, errors

NAMES = ("overview", "pools", "kv_transfer", "capacity")
SCHEMA = pathlib.Path(__file__).with_name("dashboard.schema.json")
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


def load(name):
    return json.loads((DASHBOARDS / f"{name}.json").read_text(encoding="utf-8"))


def documented_and_recorded():
    documented = Documented()
    for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]:
        for rule in group["rules"]:
            documented.add(rule.get("record", rule.get("alert")), SCRAPED | {"model", "slo", *rule.get("labels", {})})
    return documented


class DashboardsTest(unittest.TestCase):
    def setUp(self):
        self.dashboards = {name: load(name) for name in NAMES}
        self.panels = [(name, panel) for name in NAMES for panel in self.dashboards[name]["panels"]]
        self.queries = [(f"{name}/{panel['title']}", target["expr"]) for name, panel in self.panels
                        for target in panel.get("targets", [])]

    def test_the_files_are_those_of_the_description(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-B", DASHBOARDS / "make_dashboards.py", folder], check=True)
            made = {path.name: path.read_text() for path in pathlib.Path(folder).iterdir()}
        present = {path.name: path.read_text() for path in DASHBOARDS.glob("*.json")}
        self.assertEqual(sorted(made), sorted(present))
        for name, text in made.items():
            self.assertTrue(text == present[name], f"deploy/grafana/{name} is out of date: run make_dashboards.py")

    def test_the_json_has_the_form_of_grafana(self):
        validator = jsonschema.Draft7Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
        for name, dashboard in self.dashboards.items():
            found = [f"{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in validator.iter_errors(dashboard)]
            self.assertEqual(found, [], name)
        self.assertEqual(len({dashboard["uid"] for dashboard in self.dashboards.values()}), len(NAMES))

    def test_panels_have_their_own_id_and_place(self):
        for name, dashboard in self.dashboards.items():
            ids = [panel["id"] for panel in dashboard["panels"]]
            self.assertEqual(len(ids), len(set(ids)), name)
            taken = {}
            for panel in dashboard["panels"]:
                grid = panel["gridPos"]
                self.assertLessEqual(grid["x"] + grid["w"], 24, panel["title"])
                for cell in ((x, y) for x in range(grid["x"], grid["x"] + grid["w"])
                             for y in range(grid["y"], grid["y"] + grid["h"])):
                    self.assertNotIn(cell, taken, f"{name}: {panel['title']} covers {taken.get(cell)}")
                    taken[cell] = panel["title"]

    def test_panels_say_what_they_show(self):
        for name, panel in self.panels:
            if panel["type"] != "row":
                where = f"{name}/{panel['title']}"
                self.assertGreater(len(panel["description"]), 15, where)
                self.assertTrue(panel["fieldConfig"]["defaults"]["unit"], where)
                self.assertEqual([panel["datasource"], *(t["datasource"] for t in panel["targets"])],
                                 [DATASOURCE] * (1 + len(panel["targets"])), where)

    def test_variables_are_used_and_fit_series_without_the_label(self):
        for name, dashboard in self.dashboards.items():
            text = json.dumps(dashboard["panels"])
            for variable in dashboard["templating"]["list"]:
                self.assertRegex(text, rf"\$\{{?{variable['name']}\b", name)
                if variable["type"] == "query":
                    self.assertEqual(variable["allValue"], ".*")
        for where, query in self.queries:
            for label, operator in re.findall(r'(\w+)\s*([=!~]+)\s*"\$', query):
                self.assertEqual(operator, "=~", f"{where}: {label}")

    def test_every_query_parses(self):
        """promtool parses the expressions of rules only: each query becomes a rule."""
        rules = []
        for i, (_, query) in enumerate(self.queries):
            rules.append({"record": f"query_{i}", "expr": query.replace("$__rate_interval", "1m")})
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "queries.yaml")
            path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
            run = subprocess.run(["promtool", "check", "rules", path], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(f"SUCCESS: {len(self.queries)} rules found", run.stdout)

    def test_every_query_names_what_exists(self):
        documented = documented_and_recorded()
        for where, query in self.queries:
            self.assertEqual(errors(query, documented), [], f"{where}: {query}")

    def test_a_legend_names_labels_of_the_query(self):
        documented = documented_and_recorded()
        known = set().union(*documented.labels.values())
        for name, panel in self.panels:
            for target in panel.get("targets", []):
                for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                    self.assertIn(label, known, f"{name}/{panel['title']}")
                    if re.search(r"\bby \(", target["expr"]):
                        self.assertRegex(target["expr"], rf"by \([^)]*\b{label}\b", f"{name}/{panel['title']}")

    def test_every_metric_is_on_a_dashboard(self):
        shown = " ".join(query for _, query in self.queries)
        left_out = {"process_virtual_memory_bytes"}  # says nothing about memory in use
        for name in Documented().labels:
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            if name not in left_out | {"up"}:
                self.assertIn(base, shown, "a metric that no panel shows")


class NamesTest(unittest.TestCase):
    """The check of names finds what it must find."""

    def test_finds_names_that_do_not_exist(self):
        documented = documented_and_recorded()
        for query, found in (
                ('sum(baton_worker{state="lost"})', "no metric baton_worker"),
                ('sum by (stat) (baton_workers)', "no metric of the expression has the label stat"),
                ('baton_workers{model="m"}', "baton_workers has no label model"),
                ('baton_worker_kv_pages{state=~"free|cache"}', "label state has no value cache"),
                ('baton_time_to_first_token_seconds_bucket{le="0.3"}', "baton_time_to_first_token_seconds_bucket has no boundary 0.3"),
                ('rate(baton_time_to_first_token_seconds[5m])', "no metric baton_time_to_first_token_seconds")):
            self.assertEqual(errors(query, documented), [found])
        self.assertEqual(errors('sum by (le) (rate(baton_inter_token_latency_seconds_bucket{le="0.1"}[5m])) or on () vector(0)',
                                documented), [])


if __name__ == "__main__":
    unittest.main()
