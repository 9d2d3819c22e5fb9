# SPDX-License-Identifier: Apache-2.0
"""The base of the tests: a cluster for each test, and what clients of the cluster must see."""

import json
import unittest

import helm
from clients import Answer, Clients, problems
from cluster import Cluster

PATIENCE = 60  # seconds
LOG_TAIL = 3000  # characters


class PodsTest(unittest.TestCase):
    maxDiff = None

    def run(self, result=None):
        self.result = result
        return super().run(result)

    def render(self, sets, kube_version="1.35"):
        return helm.template(sets=sets, kube_version=kube_version)

    def start(self, documents, **options):
        """Returns a cluster that runs the objects, and its clients."""
        cluster = Cluster(**options)
        self.addCleanup(self.close, cluster, len(self.result.errors) + len(self.result.failures))
        cluster.apply(documents)
        return cluster, Clients(cluster, documents)

    def close(self, cluster, failed_before):
        cluster.close()
        if len(self.result.errors) + len(self.result.failures) > failed_before:
            print(f"--- {self.id()}", *cluster.notes, sep="\n")
            for pod in [*cluster.past, *cluster.pods]:
                print(f"--- {pod!r}\n{pod.log_text()[-LOG_TAIL:]}")

    def assert_ended_well(self, *pods):
        for pod in pods:
            self.assertEqual(problems(pod, PATIENCE), "")

    def assert_no_failures(self, load, but=0):
        """Every request of a load succeeded, all but a few."""
        self.assert_ended_well(load)
        report = json.loads(load.log_text())
        self.assertGreaterEqual(report["completed"], report["requests"] - but, report["errors"])

    def assert_same_answers(self, streams, tokens):
        """Every stream has all tokens. Tokens depend on all tokens before: a lost or doubled token would show."""
        self.assert_ended_well(*streams)
        answers = [Answer(pod) for pod in streams]
        for pod, answer in zip(streams, answers):
            self.assertEqual(len(answer.tokens), tokens, pod.name)
            self.assertEqual(answer.tokens, answers[0].tokens, pod.name)
        return answers
