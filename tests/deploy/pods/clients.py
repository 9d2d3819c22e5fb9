# SPDX-License-Identifier: Apache-2.0
"""Clients of a cluster: pods made from the manifest of the `helm test` pod, with other arguments."""

import itertools
import json
import re
import urllib.request

numbers = itertools.count(1)


class Clients:
    def __init__(self, cluster, documents):
        self.cluster = cluster
        self.test_pod, = (each for each in documents if each["kind"] == "Pod")
        self.target, = (each for each in self.test_pod["spec"]["containers"][0]["args"] if each.startswith("--target="))

    def start(self, *args):
        """Starts the command baton with `args` and the test pod's target."""
        return self.cluster.run_pod(self.test_pod, [*args, self.target], f"client-{next(numbers)}")

    def stream(self, tokens):
        """Starts a request for an answer of exactly `tokens` tokens, the same for each call."""
        return self.start("generate", "--chat=Count.", f"--max-tokens={tokens}", "--ignore-eos", "--temperature=0", "--seed=7",
                          "--json")

    def load(self, rate, requests, tokens):
        return self.start("bench", "serve", f"--rate={rate}", f"--requests={requests}", "--prompt-tokens=64",
                          f"--output-tokens={tokens}", "--timeout=60s", "--json")

    def workers(self):
        """The names of the workers that a router lists."""
        pod = self.start("status", "--json")
        pod.gone.wait(20)
        return {worker["worker_id"] for worker in json.loads(pod.log_text())["workers"]}


def problems(pod, seconds):
    """What went wrong with a client, or an empty text."""
    if not pod.gone.wait(seconds):
        return f"{pod.name} still runs after {seconds} s"
    return "" if pod.exits == [0] else f"{pod.name} ended with {pod.exits}: {pod.log_text()[-2000:]}"


class Answer:
    """The answer that a pod of stream() printed."""

    def __init__(self, pod):
        messages = [json.loads(line) for line in pod.log_text().splitlines()]
        chunks = [message["chunk"] for message in messages if "chunk" in message]
        self.tokens = [token for chunk in chunks for token in chunk["token_ids"]]
        self.attempts = messages[-1]["finish"]["attempts"]

    @property
    def workers(self):
        return [attempt["decode_worker"] for attempt in self.attempts]

    @property
    def ends(self):
        return [attempt["ended_by"] for attempt in self.attempts]


def metric(pod, name):
    """The sum of a metric over its labels."""
    ports = {each["name"]: each["containerPort"] for each in pod.spec["containers"][0]["ports"]}
    with urllib.request.urlopen(f"http://{pod.address}:{ports['metrics']}/metrics", timeout=20) as page:
        found = re.findall(rf"^{name}(?:{{.*}})? (\S+)$", page.read().decode(), re.MULTILINE)
    return sum(map(float, found))
