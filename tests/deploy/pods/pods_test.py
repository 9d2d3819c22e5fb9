#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pods of the rendered chart run, roll out, recover, and name mistakes. cluster.py says what the cluster leaves out."""

import base64
import copy
import pathlib
import re
import signal
import sys
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "helm"))
import helm  # noqa: E402,F401  Fetches Helm, which is out of reach in the sandbox.
import sandbox  # noqa: E402

sandbox.enter()

import memory  # noqa: E402
from case import PATIENCE, PodsTest  # noqa: E402
from clients import metric, problems  # noqa: E402

ROUTER, PREFILL, DECODE = "rel-baton-router", "rel-baton-prefill", "rel-baton-decode"
# Workers that compute nothing, and take 10 ms for a step on every machine.
REPLAY = ["prefill.device=\"replay\"", "decode.device=\"replay\"", "prefill.kvMemory=\"32Mi\"", "decode.kvMemory=\"32Mi\""]
SLOW = [*REPLAY, "decode.options={\"replay-step\":\"15ms\"}"]  # a stream lasts longer than a rollout
INIT = ["model.source=\"init\"", "model.init.image=\"copier\"", "model.init.command=[\"cp\",\"-r\",\"/demo\",\"/models\"]",
        "model.path=\"demo\""]
SHOWN = {"id -u": "65532", "id -G": "65532", "echo $(hostname) $POD_IP": "$(POD_NAME) $(POD_IP)", "ls -x /proc | grep -c 2": "0",
         "grep -c '^CapBnd:.*0000000000000000$' /proc/self/status": "1", "grep NoNewPrivs /proc/self/status | cut -f2": "1",
         "cat /etc/baton/secret/secret | wc -c": "64", "ls /models": "demo", "ls -x /sys/class/net": "eth0  lo"}


def deployment(documents, name):
    return next(each for each in documents if each["kind"] == "Deployment" and each["metadata"]["name"] == name)


class Defaults(PodsTest):
    def test_all_pods_become_ready_and_the_helm_test_gets_an_answer(self):
        documents = self.render([])
        cluster, clients = self.start(documents)
        cluster.wait_rolled_out(PATIENCE)
        test = cluster.run_pod(clients.test_pod)
        self.assert_ended_well(test)
        self.assertGreater(len(test.log_text().split()), 3)
        self.assertEqual([pod.restarts for pod in cluster.pods if pod is not test], [0, 0, 0])

    def test_a_container_has_what_the_manifest_grants_and_no_more(self):
        documents = self.render(INIT)
        refused = ["/x", "/models/x", "/etc/baton/config/x", "/proc/sys/kernel/hostname"]
        script = [*SHOWN, *(f"echo 1 2>/dev/null >{path} || echo refused" for path in refused), "echo end", "sleep 1000"]
        deployment(documents, DECODE)["spec"]["template"]["spec"]["containers"][0].update(
            image="copier", command=["sh"], args=["-c", "echo '" + "\n".join(SHOWN.values()) + "'; " + "; ".join(script)])
        cluster, _ = self.start(documents)
        pod, = cluster.wait_until("the pod exists", lambda: cluster.pods_of(DECODE), PATIENCE)
        cluster.wait_until("the script ended", lambda: pod.log_text().endswith("end\n"), PATIENCE)
        lines = pod.log_text().splitlines()
        self.assertEqual(lines[len(SHOWN):], [*lines[:len(SHOWN)], *["refused"] * len(refused), "end"])


class Rollouts(PodsTest):
    def load_until(self, clients, condition):
        """Loads the cluster with requests, all of which must succeed, at least once and until the condition is true."""
        end = time.monotonic() + PATIENCE
        while True:
            self.assert_no_failures(clients.load(rate=8, requests=24, tokens=60))
            if condition():
                return
            self.assertLess(time.monotonic(), end, "the load ran too long")

    def test_decode_workers_come_and_go_under_load(self):
        tokens, first = 1800, [*SLOW, "decode.replicas=1"]
        cluster, clients = self.start(self.render(first), pace=2)
        cluster.wait_rolled_out(PATIENCE)
        streams = [clients.stream(tokens)]

        cluster.apply(self.render([*SLOW, "decode.replicas=3"]))
        self.load_until(clients, cluster.all_rolled_out)
        old = cluster.pods_of(DECODE)
        self.assertEqual(len(old), 3)
        streams.append(clients.stream(tokens))
        for pod in old:
            cluster.wait_until(f"{pod.name} samples tokens",
                               lambda pod=pod: metric(pod, "baton_worker_output_tokens_sampled_total") > 0, PATIENCE)

        cluster.apply(self.render([*SLOW, "decode.replicas=3", "decode.options={\"max-queue\":512,\"replay-step\":\"15ms\"}"]))
        self.load_until(clients, cluster.all_rolled_out)
        new = cluster.pods_of(DECODE)
        self.assertEqual({pod.name for pod in old} & {pod.name for pod in new}, set())
        self.assertEqual([pod.exits for pod in old], [[0]] * 3)
        answers = self.assert_same_answers(streams, tokens)
        for answer in answers:
            self.assertIn("migrated", answer.ends)
        cluster.wait_until("the router lists the new workers alone", lambda: clients.workers() == {
            pod.name for pod in [*new, *cluster.pods_of(PREFILL)]}, PATIENCE)

    def test_the_only_decode_worker_is_replaced_before_dns_names_the_new_one(self):
        cluster, clients = self.start(self.render(REPLAY), pace=2)
        cluster.wait_rolled_out(PATIENCE)
        old, = cluster.pods_of(DECODE)
        expiry = cluster.answers[DECODE][0]
        cluster.wait_until("DNS has a new answer", lambda: cluster.answers[DECODE][0] > expiry, PATIENCE)
        cluster.apply(self.render([*REPLAY, "decode.options={\"max-queue\":512}"]))
        self.load_until(clients, old.gone.is_set)

    def test_routers_are_replaced_while_clients_connect_and_stay_connected(self):
        # Streams outlast the delay.
        tokens, sets = 400, [*REPLAY, "router.replicas=2", "router.drainDelaySeconds=1"]
        options = [f'router.options={{"max-requests":{requests}}}' for requests in (1024, 512, 256)]
        cluster, clients = self.start(self.render([*sets, options[0]]))
        cluster.wait_rolled_out(PATIENCE)
        streams = []
        for changed in options[1:]:
            old = cluster.pods_of(ROUTER)
            load = clients.load(rate=20, requests=400, tokens=20)  # over one connection at a time
            cluster.apply(self.render([*sets, changed]))
            while not cluster.all_rolled_out() or not load.gone.is_set():
                streams.append(clients.stream(tokens))
                time.sleep(0.5)
                self.assertLess(len(streams), 4 * PATIENCE)
            # Until the client hears of new routers from DNS, it may know routers alone that are gone. A cluster address has
            # no such moment.
            self.assert_no_failures(load, but=4)
            self.assertEqual([pod.exits for pod in old], [[0], [0]])
            drains = [re.search("\"event\":\"router.draining\",\"running\":([0-9]+)", pod.log_text()) for pod in old]
            self.assertGreater(max(int(drain[1]) for drain in drains), 0)
        self.assert_same_answers(streams, tokens)


class Recovery(PodsTest):
    def test_a_worker_that_hangs_is_started_again(self):
        cluster, clients = self.start(self.render(REPLAY), pace=5)
        cluster.wait_rolled_out(PATIENCE)
        worker, = cluster.pods_of(DECODE)
        worker.running.send(signal.SIGSTOP)
        probe = worker.running.manifest["livenessProbe"]
        seconds = probe["failureThreshold"] * probe["periodSeconds"] + probe["terminationGracePeriodSeconds"]
        cluster.wait_until("the worker is started again", lambda: worker.restarts, 10 * seconds / cluster.pace)
        cluster.wait_rolled_out(PATIENCE)
        self.assertEqual(worker.exits, [128 + signal.SIGKILL])
        self.assert_ended_well(cluster.run_pod(clients.test_pod))


class Mistakes(PodsTest):
    """Each mistake shows in a line that names what is wrong."""

    def assert_only_line(self, cluster, owner, pattern):
        """The first run of a Deployment's pod ended with a line that matches, besides information."""
        pod, = cluster.wait_until("the pod exists", lambda: cluster.pods_of(owner), PATIENCE)
        cluster.wait_until("the program ended", lambda: pod.exits, PATIENCE)
        self.assertEqual(pod.exits[0], 1)
        lines = [line for line in pod.log_text().splitlines() if "\"level\":\"info\"" not in line]
        self.assertRegex(lines[0], pattern)
        self.assertEqual(set(lines), {lines[0]})

    def test_workers_with_different_secrets(self):
        documents = self.render(REPLAY)
        other = copy.deepcopy(next(each for each in documents if each["kind"] == "Secret"))
        other["metadata"]["name"] = "other"
        other["data"]["secret"] = base64.b64encode(b"another secret of enough length").decode()
        volumes = deployment(documents, DECODE)["spec"]["template"]["spec"]["volumes"]
        next(each for each in volumes if each["name"] == "secret")["secret"]["secretName"] = "other"
        cluster, clients = self.start([*documents, other])
        (router,), (prefill,), (decode,) = cluster.wait_until(
            "pods exist", lambda: all(found := [cluster.pods_of(each) for each in (ROUTER, PREFILL, DECODE)]) and found, PATIENCE)
        for pod, line in ((router, "pair.failed.*the peer refuses our transport secret"),
                          (prefill, "peer.not_connected.*the peer refuses our transport secret"),
                          (decode, "transport.refused.*expected the same transport secret on both sides")):
            cluster.wait_until(f"{pod.name} says {line}", lambda pod=pod, line=line: re.search(line, pod.log_text()), PATIENCE)
        cluster.wait_until("workers are ready", lambda: prefill.ready and decode.ready, PATIENCE)
        self.assertFalse(router.ready)
        self.assertEqual(cluster.endpoints(cluster.find("Service", ROUTER)["spec"]), [])

    def test_options_that_do_not_exist(self):
        config = "^baton-[a-z]+: /etc/baton/config/config.yaml:[0-9]+: "
        cluster, _ = self.start(self.render(["router.options={\"max-request\":3}", "decode.options={\"max-queu\":3}"]))
        self.assert_only_line(cluster, ROUTER, config + "unknown key max-request; did you mean max-requests[?]$")
        self.assert_only_line(cluster, DECODE, config + "unknown key max-queu; did you mean max-queue[?]$")

    def test_a_claim_without_the_model(self):
        claim = pathlib.Path("/run/claim")
        (claim / "llama").mkdir(parents=True)
        documents = self.render(["model.source=\"claim\"", "model.claim.name=\"models\"", "model.path=\"llama\""])
        cluster, _ = self.start(documents, claims={"models": claim})
        self.assert_only_line(cluster, PREFILL, "\"error\":\"model /models/llama: has no config.json, expected")

    def test_more_memory_for_pages_than_the_pod_has(self):
        if not memory.usable():
            self.skipTest("this machine has no memory controller that the test may use")
        # The chart believes that a worker needs 1 MiB besides its pages.
        sets = ["model.memory=\"1Mi\"", "decode.kvMemory=\"120Mi\"", "decode.resources={\"limits\":{\"memory\":\"124Mi\"}}"]
        cluster, _ = self.start(self.render(sets))
        self.assert_only_line(cluster, DECODE, "\"error\":\"kv-memory: .*left under the limit of this process's cgroup: [0-9]")


if __name__ == "__main__":
    unittest.main()
