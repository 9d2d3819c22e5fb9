#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/docker/compose.yaml against the programs, the configuration of Prometheus, and the files that it mounts."""

import os
import pathlib
import re
import sys
import unittest

import yaml

import compose

sys.path.insert(0, str(compose.ROOT / "deploy" / "reference"))
import programs  # noqa: E402

BIN = pathlib.Path(os.environ["BATON_BIN"])
PROVISIONING = compose.FILE.parent / "grafana" / "provisioning"


def names_of(service_name, service):
    return [service_name, *compose.aliases(service)]


class ComposeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.all = compose.document()
        cls.baton = compose.baton_services()

    def mounts(self, service):
        """(source, target) of each volume."""
        return [tuple(volume.split(":")[:2]) for volume in self.all["services"][service].get("volumes", [])]

    def test_the_services_are_a_router_two_workers_of_each_role_and_the_monitoring(self):
        count = [service["command"][0] for service in self.baton.values()]
        self.assertEqual(sorted(count), ["baton-decode"] * 2 + ["baton-prefill"] * 2 + ["baton-router"])
        self.assertEqual(set(self.all["services"]) - set(self.baton), {"prometheus", "grafana"})

    def test_the_programs_know_every_option(self):
        for name, service in self.baton.items():
            command = programs.describe(BIN / service["command"][0])
            known = {text: option for option in command.options for text in option.names}
            for option, value in compose.options(service).items():
                self.assertIn(option, known, name)
                self.assertTrue(known[option].takes_value, f"{name}: {option}")
                if known[option].choices:
                    self.assertIn(value, known[option].choices, f"{name}: {option}")

    def test_each_service_has_no_rights_that_it_does_not_need(self):
        for name, service in self.all["services"].items():
            self.assertIs(service["read_only"], True, name)
            self.assertEqual(service["cap_drop"], ["ALL"], name)
            self.assertEqual(service["security_opt"], ["no-new-privileges:true"], name)
            self.assertFalse({"privileged", "cap_add", "user", "pid", "ipc", "network_mode"} & set(service), name)
            for published in service.get("ports", []):
                self.assertRegex(published, r"^127\.0\.0\.1:", name)

    def test_a_drain_fits_into_the_time_before_sigkill(self):
        for name, service in self.baton.items():
            drain = compose.seconds(compose.options(service)["--drain-timeout"])
            self.assertGreaterEqual(compose.seconds(service["stop_grace_period"]), drain + 5, name)

    def test_an_unset_secret_is_an_error_and_only_workers_have_the_secret(self):
        for name, service in self.baton.items():
            secret = service.get("environment", {}).get("BATON_SECRET", "")
            self.assertEqual(name != "router", secret.startswith("${BATON_SECRET:?"), name)

    def test_the_router_finds_every_worker(self):
        found = set()
        for target in compose.options(self.baton["router"])["--workers"].split(","):
            dns_name, port = re.fullmatch(r"dns:///(\w+):(\d+)", target).groups()
            for name, service in self.baton.items():
                if dns_name in compose.aliases(service):
                    self.assertEqual(compose.port(service, "--listen"), int(port), name)
                    found.add(name)
        self.assertEqual(found, set(self.baton) - {"router"})

    def test_a_worker_listens_at_its_own_name(self):
        for name in set(self.baton) - {"router"}:
            service = self.baton[name]
            own = compose.options(service)
            self.assertEqual((service["hostname"], own["--worker-id"]), (name, name))
            for option in {"--listen", "--handoff-listen"} & set(own):
                self.assertEqual(own[option].rpartition(":")[0], name)
            # `baton status` asks a router.
            self.assertEqual(service["healthcheck"], {"disable": True}, name)

    def test_prometheus_scrapes_every_process(self):
        config = yaml.safe_load((compose.ROOT / "deploy/prometheus/prometheus.yaml").read_text())
        scraped = set()
        for job in config["scrape_configs"]:
            for discovery in job["dns_sd_configs"]:
                for name, service in self.baton.items():
                    if set(discovery["names"]) & set(names_of(name, service)):
                        self.assertEqual(compose.port(service, "--metrics-listen"), discovery["port"], name)
                        scraped.add(name)
        self.assertEqual(scraped, set(self.baton))
        path = dict(word.split("=", 1) for word in self.all["services"]["prometheus"]["command"])["--config.file"]
        [source] = [source for source, target in self.mounts("prometheus") if target == os.path.dirname(path)]
        self.assertTrue((compose.FILE.parent / source / os.path.basename(path)).is_file())

    def test_everything_mounted_exists(self):
        for name in self.all["services"]:
            for source, _ in self.mounts(name):
                if source.startswith("."):
                    self.assertTrue((compose.FILE.parent / source).exists(), source)
                else:
                    self.assertIn(source, self.all["volumes"])
        for service in self.baton.values():
            context = compose.FILE.parent / service["build"]["context"]
            self.assertTrue((context / service["build"]["dockerfile"]).is_file())
            model = compose.options(service).get("--model")
            if model:
                self.assertTrue((compose.ROOT / "models" / pathlib.Path(model).name / "config.json").is_file(), model)

    def test_grafana_has_the_data_source_and_the_dashboards(self):
        [source] = yaml.safe_load((PROVISIONING / "datasources/prometheus.yaml").read_text())["datasources"]
        self.assertEqual((source["type"], source["url"]), ("prometheus", "http://prometheus:9090"))
        self.assertIs(source["isDefault"], True)
        scrape = yaml.safe_load((compose.ROOT / "deploy/prometheus/prometheus.yaml").read_text())["global"]["scrape_interval"]
        self.assertEqual(source["jsonData"]["timeInterval"], scrape)
        [provider] = yaml.safe_load((PROVISIONING / "dashboards/baton.yaml").read_text())["providers"]
        mounts = {target: source for source, target in self.mounts("grafana")}
        folder = compose.FILE.parent / mounts[provider["options"]["path"]]
        self.assertGreaterEqual(len(list(folder.glob("*.json"))), 4)
        self.assertEqual((compose.FILE.parent / mounts["/etc/grafana/provisioning"]).resolve(), PROVISIONING.resolve())


if __name__ == "__main__":
    unittest.main()
