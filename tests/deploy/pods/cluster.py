# SPDX-License-Identifier: Apache-2.0
"""A cluster of one node that runs the objects of a rendered chart, in a sandbox.

Unlike a real cluster: no kube-proxy, so that the name of a Service with a cluster address answers with the addresses of its
ready pods, and a connection goes to a pod directly; no seccomp; a volume does not follow later changes of a ConfigMap.
"""

import copy
import threading
import time

import controllers
import dns
import network
import release
from pod import Pod

STEP_SECONDS = 0.05


class Cluster:
    """`pace`: the cluster's times (of probes, restarts, DNS) are divided by this number.

    `claims`: folders of PersistentVolumeClaims by name.
    """

    namespace = "serving"
    shared_network = None

    def __init__(self, pace=1, claims=None):
        self.pace, self.claims = pace, claims or {}
        if Cluster.shared_network is None:
            Cluster.shared_network = network.Network()
        self.network = Cluster.shared_network
        self.objects = {}  # (kind, name) -> object
        self.pods, self.past = [], []  # `past`: pods that are gone
        self.answers = {}  # headless Service -> (when the answer expires, addresses)
        self.notes = []
        self.began = time.monotonic()
        self.lock = threading.RLock()
        self.closed = threading.Event()
        self.server = dns.Server(network.NODE, self.addresses_of_name)
        self.controller = threading.Thread(target=self.control, daemon=True)
        self.controller.start()

    def note(self, text):
        self.notes.append(f"{time.monotonic() - self.began:7.2f} {text}")

    # Objects.

    def find(self, kind, name):
        return self.objects[kind, name]

    def apply(self, documents):
        """Takes a release's objects, as `helm upgrade` does: a Secret that exists keeps its value, and no test runs."""
        with self.lock:
            for document in documents:
                key = document["kind"], document["metadata"]["name"]
                if document["kind"] == "Pod" or (document["kind"] == "Secret" and key in self.objects):
                    continue
                self.objects[key] = copy.deepcopy(document)

    def control(self):
        while not self.closed.wait(STEP_SECONDS):
            with self.lock:
                self.past += [pod for pod in self.pods if pod.gone.is_set()]
                self.pods = [pod for pod in self.pods if not pod.gone.is_set()]
                for deployment in self.deployments():
                    self.pods += controllers.reconcile(deployment, self.pods_of(deployment["metadata"]["name"]), self)

    def deployments(self):
        return [each for (kind, _), each in self.objects.items() if kind == "Deployment"]

    def run_pod(self, document, args=None, name=None):
        """Starts a pod that no Deployment owns. `args`, `name`: in place of the manifest's."""
        spec = copy.deepcopy(document["spec"])
        if args is not None:
            spec["containers"][0]["args"] = args
        pod = Pod(name or document["metadata"]["name"], self.namespace, {} if name else document["metadata"]["labels"], spec, self)
        with self.lock:
            self.pods.append(pod)
        return pod

    # Pods.

    def pods_of(self, owner):
        """The pods of a Deployment, those that terminate included."""
        with self.lock:
            return [pod for pod in self.pods if pod.owner == owner]

    def wait_until(self, what, condition, seconds):
        """Returns the condition's first true value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := condition():
                return value
            time.sleep(STEP_SECONDS)
        raise AssertionError(f"not within {seconds} s: {what}")

    def all_rolled_out(self):
        """Whether all Deployments have the pods they want, and no others."""
        return all(controllers.rolled_out(each, self.pods_of(each["metadata"]["name"])) for each in self.deployments())

    def wait_rolled_out(self, seconds):
        self.wait_until("all Deployments are rolled out", self.all_rolled_out, seconds)

    # Names.

    def addresses_of_name(self, name):
        """What DNS answers: addresses, or None if the name does not exist."""
        suffix = f".{self.namespace}.svc.{dns.DOMAIN}"
        if not name.endswith(suffix):
            return None
        *pod, service = name.removesuffix(suffix).split(".")
        with self.lock:
            if len(pod) > 1 or ("Service", service) not in self.objects:
                return None
            spec = self.objects["Service", service]["spec"]
            addresses = self.cached_endpoints(service, spec) if spec.get("clusterIP") == "None" else self.endpoints(spec)
        if pod:
            addresses = [each for each in addresses if each.replace(".", "-") == pod[0]] or None
        return addresses

    def cached_endpoints(self, service, spec):
        """CoreDNS gives an answer again until the answer's time to live is over."""
        now = time.monotonic()
        if service not in self.answers or now > self.answers[service][0]:
            self.answers[service] = now + dns.TTL_SECONDS / self.pace, self.endpoints(spec)
        return self.answers[service][1]

    def endpoints(self, spec):
        """The addresses of a Service's pods. A pod that terminates is not ready."""
        early = spec.get("publishNotReadyAddresses", False)
        return [pod.address for pod in self.pods
                if pod.address and release.matches(spec["selector"], pod.labels) and (early or pod.ready)]

    # End.

    def close(self):
        """Kills all pods, and waits until they are gone."""
        self.closed.set()
        self.controller.join(timeout=10)
        for pod in self.pods:
            pod.kill()
        for pod in self.pods:
            pod.gone.wait(10)
        self.server.close()
