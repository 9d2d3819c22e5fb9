#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chart, rendered with each value set of tests/deploy/helm/values, passes the checks of checks.py.

BATON_BIN names the folder with the built programs.
"""

import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import helm
from checks import problems_of
from fake_cluster import fake_cluster
from kubernetes_fields import Fields
from program_options import ProgramOptions
from release import Release

VERSIONS = ("1.29", "1.30", "1.35")
VALUE_SETS = sorted(helm.VALUES.glob("*.yaml"))


def header(path, name):
    match = re.search(rf"^# {name}: (.*)$", path.read_text(), re.MULTILINE)
    return match[1].split(", ") if match else []


def release_of(path, version="1.35"):
    return Release(helm.template(path, version), header(path, "external"))


def by_name(documents, kind, name):
    return next(each for each in documents if (each["kind"], each["metadata"]["name"]) == (kind, name))


class ChartTest(unittest.TestCase):
    def test_every_value_set_passes_the_checks(self):
        self.assertGreaterEqual(len(VALUE_SETS), 8)
        options = ProgramOptions(pathlib.Path(os.environ["BATON_BIN"]))
        for version in VERSIONS:
            fields = Fields(version)
            for path in VALUE_SETS:
                since = header(path, "since")
                if since and tuple(map(int, version.split("."))) < tuple(map(int, since[0].split("."))):
                    continue
                with self.subTest(values=path.name, kubernetes=version):
                    release = release_of(path, version)
                    found = [problem for document in release.documents for problem in fields.problems(document)]
                    self.assertEqual(found + problems_of(release) + list(options.problems(release)), [])

    def test_lint_finds_nothing(self):
        for path in VALUE_SETS:
            with self.subTest(values=path.name):
                helm.helm("lint", "--strict", "--kube-version", "1.35", "--values", str(path), str(helm.CHART))

    def test_a_changed_option_replaces_the_pods_of_its_pool_alone(self):
        def checksums(*sets):
            return {each["metadata"]["name"]: each["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
                    for each in helm.template(sets=sets) if each["kind"] == "Deployment"}

        before, after = checksums(), checksums('prefill.options={"max-queue":99}')
        changed = {name for name in before if before[name] != after[name]}
        self.assertEqual(changed, {"rel-baton-prefill"})

    def test_options_reach_the_config_file_as_written(self):
        documents = helm.template(sets=['prefill.options={"token-budget":1048576,"cpus":[0,1],"prefault":"off"}'])
        text = by_name(documents, "ConfigMap", "rel-baton-prefill")["data"]["config.yaml"]
        for line in ("token-budget: 1048576\n", "cpus:\n- 0\n- 1\n", 'prefault: "off"\n'):
            self.assertIn(line, text)

    def test_a_preset_decides_what_the_values_leave_open(self):
        for sets, expected in ([], False), (["prefill.maxSequences=32"], True):
            documents = helm.template(sets=['prefill.options={"preset":"batch"}', *sets])
            text = by_name(documents, "ConfigMap", "rel-baton-prefill")["data"]["config.yaml"]
            self.assertIn("preset: batch\n", text)
            self.assertEqual("max-sequences:" in text, expected)

    def test_the_volume_of_a_kv_tier_is_64_mib_larger_than_the_file(self):
        documents = helm.template(sets=['prefill.kvTierFileSize="2Gi"'])
        pod = by_name(documents, "Deployment", "rel-baton-prefill")["spec"]["template"]["spec"]
        volume = next(each for each in pod["volumes"] if each["name"] == "kv-tier")
        self.assertEqual(volume["emptyDir"], {"sizeLimit": str(2 * 2**30 + 64 * 2**20)})

    def test_threads_follow_the_pods_cpus(self):
        for resources, expected in ({"limits": {"cpu": "1500m"}}, 2), ({"requests": {"cpu": 3}}, 3), ({}, 0):
            with self.subTest(resources=resources):
                resources = {"requests": None, "limits": None, **resources}
                documents = helm.template(sets=[f"prefill.resources={json.dumps(resources)}"])
                text = by_name(documents, "ConfigMap", "rel-baton-prefill")["data"]["config.yaml"]
                self.assertIn(f"threads: {expected}\n", text)

    def test_pods_of_ipv6_advertise_an_address_in_brackets(self):
        release = release_of(helm.VALUES / "host_path_ipv6.yaml")
        decode = release.pods_with({"app.kubernetes.io/component": "decode"})[0]
        self.assertIn("--handoff-advertise=[$(POD_IP)]:50081", decode.main["args"])
        self.assertIn("--handoff-host=$(POD_IP)", decode.main["args"])

    def test_the_secret_stays_after_the_release(self):
        secret = by_name(helm.template(), "Secret", "rel-baton-secret")
        self.assertEqual(secret["metadata"]["annotations"], {"helm.sh/resource-policy": "keep"})
        self.assertGreater(len(base64.b64decode(secret["data"]["secret"])), 32)

    def test_an_upgrade_keeps_the_value_of_the_secret(self):
        owner = {"meta.helm.sh/release-name": "rel", "meta.helm.sh/release-namespace": "serving"}
        metadata = {"name": "rel-baton-secret", "namespace": "serving", "annotations": owner,
                    "labels": {"app.kubernetes.io/managed-by": "Helm"}}
        old = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"secret": "dGhlIG9sZCBzZWNyZXQ="}}
        for known, same in (old, True), (None, False):
            with tempfile.TemporaryDirectory() as folder, fake_cluster(known, pathlib.Path(folder)) as config:
                documents = helm.template(arguments=["--dry-run=server", "--disable-openapi-validation", "--kubeconfig", str(config)])
            value = by_name(documents, "Secret", "rel-baton-secret")["data"]["secret"]
            self.assertEqual(value == old["data"]["secret"], same)

    def test_rules_and_dashboards_are_those_of_the_files(self):
        switches = ["monitoring.rules=true", "monitoring.dashboards=true"]
        with tempfile.TemporaryDirectory() as folder:
            chart = pathlib.Path(folder) / "baton"
            shutil.copytree(helm.CHART, chart, ignore=shutil.ignore_patterns("files"))
            self.assertEqual([each["kind"] for each in helm.template(sets=switches, chart=chart)].count("PrometheusRule"), 0)
            dashboard = '{"title": "{{ not a template }}"}\n'
            rules = {"groups": [{"name": "g", "rules": [
                {"alert": "A", "expr": "up == 0", "annotations": {"summary": "{{ $labels.pod }}"}}]}]}
            for name, text in ("dashboards/a_b.json", dashboard), ("rules/a_b.rules.yaml", json.dumps(rules)):
                (chart / "files" / name).parent.mkdir(parents=True)
                (chart / "files" / name).write_text(text)
            documents = helm.template(sets=switches, chart=chart)
        self.assertEqual(by_name(documents, "ConfigMap", "rel-baton-dashboard-a-b")["data"]["a_b.json"], dashboard)
        self.assertEqual(by_name(documents, "PrometheusRule", "rel-baton-a-b")["spec"], rules)

    def test_a_package_has_the_dashboards_and_rules_of_the_repository(self):
        self.assertEqual(os.readlink(helm.CHART / "files" / "dashboards"), "../../../grafana")
        self.assertEqual(os.readlink(helm.CHART / "files" / "rules"), "../../../prometheus")
        switches = ["monitoring.rules=true", "monitoring.dashboards=true"]
        names = {each["metadata"]["name"] for each in helm.template(sets=switches)}
        deploy = helm.ROOT / "deploy"
        wanted = {f"rel-baton-dashboard-{path.stem}" for path in deploy.glob("grafana/*.json")}
        wanted |= {f"rel-baton-{path.name.removesuffix('.rules.yaml')}" for path in deploy.glob("prometheus/*.rules.yaml")}
        self.assertLessEqual({name.replace("_", "-") for name in wanted}, names)

    def test_the_readme_has_the_values_of_the_chart(self):
        script = helm.ROOT / "deploy" / "helm" / "values_doc.py"
        run = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(run.stderr, "")

    def test_every_value_has_a_comment(self):
        sys.path.append(str(helm.ROOT / "deploy" / "helm"))
        import values_doc  # noqa: PLC0415
        import yaml  # noqa: PLC0415
        text = (helm.CHART / "values.yaml").read_text()
        told = {".".join(path) for path, _ in values_doc.described(text)}

        def untold(values, prefix=""):
            for key, value in values.items():
                name = prefix + key
                if name in told:
                    continue
                if not isinstance(value, dict) or not value:
                    yield name
                else:
                    yield from untold(value, name + ".")

        self.assertEqual(list(untold(yaml.safe_load(text))), [])


if __name__ == "__main__":
    unittest.main()
