#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checks of the rendered chart refuse broken manifests: each mutation breaks one thing, and a check names the thing.

BATON_BIN names the folder with the built programs.
"""

import copy
import os
import pathlib
import unittest

import helm
import yaml
from checks import problems_of
from kubernetes_fields import Fields
from program_options import ProgramOptions, parse_help
from release import Release

PREFILL, DECODE, ROUTER = "rel-baton-prefill", "rel-baton-decode", "rel-baton-router"


class Broken:
    """The rendered objects, to break one. A path is keys and indices; a missing key on the way is an error."""

    def __init__(self, documents):
        self.documents = copy.deepcopy(documents)

    def object(self, kind, name):
        return next(each for each in self.documents if (each["kind"], each["metadata"]["name"]) == (kind, name))

    def at(self, kind, name, *path):
        place = self.object(kind, name)
        for key in path:
            place = place[key]
        return place

    def pod(self, name, *path):
        return self.at("Deployment", name, "spec", "template", "spec", *path)

    def container(self, name, *path):
        return self.pod(name, "containers", 0, *path)

    def remove(self, kind, name):
        self.documents.remove(self.object(kind, name))

    def option(self, name, option, value):
        data = self.at("ConfigMap", name, "data")
        data["config.yaml"] = yaml.safe_dump({**yaml.safe_load(data["config.yaml"]), option: value})


def set_key(place, key, value):
    place[key] = value


# What is broken, a part of what a check says, and how it is broken. The value set is hpa_network_policy.yaml.
MUTATIONS = [
    ("pods have another label", "the selector does not match",
     lambda b: set_key(b.at("Deployment", PREFILL, "spec", "template", "metadata", "labels"), "app.kubernetes.io/name", "x")),
    ("a Service selects nothing", f"Service/{DECODE}: the selector finds no pod",
     lambda b: set_key(b.at("Service", DECODE, "spec", "selector"), "app.kubernetes.io/component", "x")),
    ("a budget selects nothing", f"PodDisruptionBudget/{DECODE}: the selector finds no pod",
     lambda b: set_key(b.at("PodDisruptionBudget", DECODE, "spec", "selector", "matchLabels"), "a", "b")),
    ("a PodMonitor selects nothing", "PodMonitor/rel-baton: the selector finds no pod",
     lambda b: set_key(b.at("PodMonitor", "rel-baton", "spec", "selector", "matchLabels"), "a", "b")),
    ("a PodMonitor asks for another port", "has no port web",
     lambda b: set_key(b.at("PodMonitor", "rel-baton", "spec", "podMetricsEndpoints", 0), "port", "web")),
    ("a targetPort that no container has", f"Service/{PREFILL}: Deployment/{PREFILL} has no port http",
     lambda b: set_key(b.at("Service", PREFILL, "spec", "ports", 0), "targetPort", "http")),
    ("the test asks another port", "no Service rel-baton-router has the port 1",
     lambda b: set_key(b.at("Pod", "rel-baton-test", "spec", "containers", 0, "args"), 1, f"--target={ROUTER}:1")),
    ("routers know one pool less", f"no address in --workers finds Deployment/{DECODE}",
     lambda b: set_key(b.container(ROUTER, "args"), 2, f"--workers=dns:///{PREFILL}:50061")),
    ("routers ask the wrong port", f"dns:///{PREFILL}:50071 is not the gRPC port",
     lambda b: set_key(b.container(ROUTER, "args"), 2, f"--workers=dns:///{PREFILL}:50071,dns:///{DECODE}:50071")),
    ("routers ask for no Service", "no Service has the address dns:///x:50061",
     lambda b: set_key(b.container(ROUTER, "args"), 2, f"--workers=dns:///x:50061,dns:///{DECODE}:50071")),
    ("workers get a cluster address", "need a headless Service",
     lambda b: b.at("Service", PREFILL, "spec").pop("clusterIP")),
    ("workers are hidden until they are ready", "need a headless Service with publishNotReadyAddresses",
     lambda b: set_key(b.at("Service", PREFILL, "spec"), "publishNotReadyAddresses", False)),
    ("a program listens on another port", f"Deployment/{DECODE}: the port handoff is 50081",
     lambda b: b.option(DECODE, "handoff-listen", "0.0.0.0:50082")),
    ("a program listens on the loopback device", f"Deployment/{PREFILL}: the port grpc is 50061",
     lambda b: b.option(PREFILL, "listen", "127.0.0.1:50061")),
    ("a probe asks another port", "readinessProbe asks the port 1",
     lambda b: set_key(b.container(DECODE, "readinessProbe", "grpc"), "port", 1)),
    ("a probe asks for another service", "startupProbe asks for baton.v1.Worker",
     lambda b: set_key(b.container(DECODE, "startupProbe", "grpc"), "service", "baton.v1.Worker")),
    ("a probe asks for another page", "livenessProbe asks for a page",
     lambda b: set_key(b.container(ROUTER, "livenessProbe", "httpGet"), "path", "/healthz")),
    ("no probe", "no startupProbe", lambda b: b.container(PREFILL).pop("startupProbe")),
    ("liveness of a router needs a pair", "which a router without a ready pair denies",
     lambda b: set_key(b.container(ROUTER), "livenessProbe", b.container(ROUTER, "readinessProbe"))),
    ("an old worker drains early", f"Deployment/{DECODE}: minReadySeconds is less",
     lambda b: b.at("Deployment", DECODE, "spec").pop("minReadySeconds")),
    ("a worker that hangs may drain", "a worker that hangs is given the whole grace period",
     lambda b: b.container(DECODE, "livenessProbe").pop("terminationGracePeriodSeconds")),
    ("no ConfigMap", f"ConfigMap/{PREFILL} is neither rendered nor external", lambda b: b.remove("ConfigMap", PREFILL)),
    ("no Secret", "Secret/rel-baton-secret is neither", lambda b: b.remove("Secret", "rel-baton-secret")),
    ("no ServiceAccount", "ServiceAccount/rel-baton is neither", lambda b: b.remove("ServiceAccount", "rel-baton")),
    ("no claim", "PersistentVolumeClaim/models is neither",
     lambda b: b.pod(PREFILL, "volumes").append({"name": "m", "persistentVolumeClaim": {"claimName": "models"}})),
    ("a variable of no Secret", "Secret/tokens is neither",
     lambda b: b.container(PREFILL, "env").append({"name": "T", "valueFrom": {"secretKeyRef": {"name": "tokens", "key": "k"}}})),
    ("a mount without a volume", "no volume has the name config", lambda b: b.pod(ROUTER, "volumes").clear()),
    ("an argument without its variable", "$(POD_IP), which is no variable",
     lambda b: b.container(DECODE, "env").pop(1)),
    ("another key of the Secret", "no key for /etc/baton/secret/secret",
     lambda b: set_key(b.at("Secret", "rel-baton-secret"), "data", {"token": "eA=="})),
    ("a worker without a secret", "no secret-file", lambda b: b.at("ConfigMap", DECODE)["data"].update({"config.yaml": "{}"})),
    ("the secret is elsewhere", "no Secret is mounted at /secret", lambda b: b.option(DECODE, "secret-file", "/secret")),
    ("an autoscaler of nothing", "Deployment/x is neither",
     lambda b: set_key(b.at("HorizontalPodAutoscaler", PREFILL, "spec", "scaleTargetRef"), "name", "x")),
    ("two set the replicas", "sets replicas, too", lambda b: set_key(b.at("Deployment", PREFILL, "spec"), "replicas", 3)),
    ("root", "the pod may run as root", lambda b: set_key(b.pod(ROUTER, "securityContext"), "runAsNonRoot", False)),
    ("a container as root", "runs as root", lambda b: set_key(b.container(ROUTER, "securityContext"), "runAsUser", 0)),
    ("no seccomp profile", "no seccomp profile", lambda b: b.pod(DECODE, "securityContext").pop("seccompProfile")),
    ("a token", "gets a token", lambda b: b.pod(DECODE).pop("automountServiceAccountToken")),
    ("the host's network", "shares namespaces", lambda b: set_key(b.pod(DECODE), "hostNetwork", True)),
    ("a writable root", "may write to its root",
     lambda b: b.container(DECODE, "securityContext").pop("readOnlyRootFilesystem")),
    ("more privileges", "may get more privileges",
     lambda b: b.container(DECODE, "securityContext").pop("allowPrivilegeEscalation")),
    ("a capability", "has capabilities",
     lambda b: set_key(b.container(DECODE, "securityContext", "capabilities"), "add", ["IPC_LOCK"])),
    ("an init container without limits of its rights", "container fetch has capabilities",
     lambda b: set_key(b.pod(DECODE), "initContainers", [{"name": "fetch", "image": "x"}])),
    ("too little time to drain", f"Deployment/{DECODE}: terminationGracePeriodSeconds is less",
     lambda b: b.option(DECODE, "drain-timeout", "41s")),
    ("too long a delay", f"Deployment/{ROUTER}: terminationGracePeriodSeconds is less",
     lambda b: b.option(ROUTER, "drain-delay", "16s")),
    ("pods without a policy", f"Deployment/{DECODE}: no NetworkPolicy", lambda b: b.remove("NetworkPolicy", DECODE)),
    ("a policy's port that no pod has", "has no port web",
     lambda b: set_key(b.at("NetworkPolicy", DECODE, "spec", "ingress", 0, "ports", 0), "port", "web")),
    ("a policy open to everybody", "open to everybody", lambda b: b.at("NetworkPolicy", DECODE, "spec", "ingress", 1).pop("from")),
    ("all ports for every pod of the namespace", "lets in more than both, decode, prefill",
     lambda b: b.at("NetworkPolicy", DECODE, "spec", "ingress", 1, "from").append({"podSelector": {}})),
    ("gRPC of workers for others", "lets in more than router",
     lambda b: b.at("NetworkPolicy", DECODE, "spec", "ingress", 0, "from").append({"namespaceSelector": {}})),
    ("an object twice", f"Service/{PREFILL}: rendered twice", lambda b: b.documents.append(b.object("Service", PREFILL))),
    ("a long name", "not a DNS label", lambda b: set_key(b.at("Service", PREFILL, "metadata"), "name", "a" * 64)),
    ("readiness without gRPC", "readinessProbe does not ask for gRPC",
     lambda b: set_key(b.container(ROUTER), "readinessProbe", b.container(ROUTER, "livenessProbe"))),
    ("a privileged container", "may get more privileges",
     lambda b: set_key(b.container(DECODE, "securityContext"), "privileged", True)),
    ("no options", f"Deployment/{DECODE}: no ConfigMap has the options", lambda b: b.pod(DECODE, "volumes").pop(0)),
    # fields
    ("an unknown field", "V1Container has no field commands", lambda b: set_key(b.container(PREFILL), "commands", [])),
    ("a missing field", "containers[0]: the field name is required", lambda b: b.container(PREFILL).pop("name")),
    ("a wrong type", "containerPort: expected number", lambda b: set_key(b.container(PREFILL, "ports", 0), "containerPort", "1")),
    ("a number as a label", "expected string, not 1",
     lambda b: set_key(b.at("Service", PREFILL, "metadata", "labels"), "a", 1)),
    ("an old API", "no kind HorizontalPodAutoscaler of autoscaling/v2beta2",
     lambda b: set_key(b.object("HorizontalPodAutoscaler", PREFILL), "apiVersion", "autoscaling/v2beta2")),
    ("an unknown field of a custom resource", "'scheme' was unexpected",
     lambda b: set_key(b.at("PodMonitor", "rel-baton", "spec", "podMetricsEndpoints", 0), "scheme", "http")),
    # options
    ("an unknown option", "baton-prefill has no option kv-pages", lambda b: b.option(PREFILL, "kv-pages", 3)),
    ("an unknown argument", "baton-router has no option role", lambda b: b.container(ROUTER, "args").append("--role=both")),
    ("a choice that is none", "baton-decode has no choice int3 for quantize", lambda b: b.option(DECODE, "quantize", "int3")),
]
# The same for objects of other value sets.
OTHER_MUTATIONS = {
    "init_ingress_monitoring.yaml": [
        ("an Ingress to a port that is none", f"Ingress/{ROUTER}: no Service {ROUTER} has the port http",
         lambda b: set_key(ingress_backend(b), "port", {"name": "http"})),
        ("an Ingress to no Service", f"Ingress/{ROUTER}: no Service x", lambda b: set_key(ingress_backend(b), "name", "x")),
        ("a certificate that is none", "Secret/x is neither",
         lambda b: set_key(b.at("Ingress", ROUTER, "spec", "tls", 0), "secretName", "x")),
        ("an init container as root", "container model runs as root",
         lambda b: set_key(b.pod(DECODE, "initContainers", 0, "securityContext"), "runAsUser", 0)),
    ],
    "image_volume_gateway.yaml": [
        ("a route to a port that is none", f"GRPCRoute/{ROUTER}: no Service {ROUTER} has the port 1",
         lambda b: set_key(b.at("GRPCRoute", ROUTER, "spec", "rules", 0, "backendRefs", 0), "port", 1)),
    ],
    "keda.yaml": [
        ("a ScaledObject of nothing", "Deployment/x is neither",
         lambda b: set_key(b.at("ScaledObject", DECODE, "spec", "scaleTargetRef"), "name", "x")),
        ("a trigger without a query", "'query' is a required property",
         lambda b: b.at("ScaledObject", DECODE, "spec", "triggers", 0, "metadata").pop("query")),
        ("a Service that is not scraped", f"no selected Service has the pods of Deployment/{DECODE}",
         lambda b: b.at("Service", DECODE, "metadata", "labels").pop("baton/metrics")),
        ("a port that is not scraped", f"ServiceMonitor/rel-baton: Service/{DECODE} has no port web",
         lambda b: set_key(b.at("ServiceMonitor", "rel-baton", "spec", "endpoints", 0), "port", "web")),
    ],
}


def ingress_backend(broken):
    return broken.at("Ingress", ROUTER, "spec", "rules", 0, "http", "paths", 0, "backend", "service")


class ChecksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.documents = helm.template(helm.VALUES / "hpa_network_policy.yaml")
        cls.fields = Fields("1.35")
        cls.options = ProgramOptions(pathlib.Path(os.environ["BATON_BIN"]))

    def problems(self, documents):
        release = Release(documents, external=["Secret/hub", "Secret/llm-tls"])
        found = [problem for document in documents for problem in self.fields.problems(document)]
        return found + problems_of(release) + list(self.options.problems(release))

    def expect_noticed(self, documents, mutations):
        self.assertEqual(self.problems(documents), [])
        for name, expected, mutate in mutations:
            with self.subTest(name):
                broken = Broken(documents)
                mutate(broken)
                self.assertIn(expected, "\n".join(self.problems(broken.documents)))

    def test_every_mutation_is_noticed(self):
        self.expect_noticed(self.documents, MUTATIONS)
        for values, mutations in OTHER_MUTATIONS.items():
            self.expect_noticed(helm.template(helm.VALUES / values), mutations)

    def test_a_field_newer_than_kubernetes_is_noticed(self):
        fields, broken = Fields("1.29"), Broken(self.documents)
        broken.container(ROUTER)["lifecycle"] = {"preStop": {"sleep": {"seconds": 5}}}
        text = "\n".join(problem for document in broken.documents for problem in fields.problems(document))
        self.assertIn("Kubernetes 1.29 drops the field sleep", text)

    def test_help_is_read(self):
        text = ("Options:\n  -h,--help    Print\n  --config FILE   YAML\n  --log.level debug|info   least\n"
                "  --device cpu|replay\n                 a line about --nothing\n")
        self.assertEqual(parse_help(text), {"help": [], "config": [], "log.level": ["debug", "info"], "device": ["cpu", "replay"]})


if __name__ == "__main__":
    unittest.main()
