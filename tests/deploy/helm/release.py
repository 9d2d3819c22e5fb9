# SPDX-License-Identifier: Apache-2.0
"""A rendered release: its objects and pods, as the checks look at them."""

import re
from dataclasses import dataclass

import yaml


@dataclass
class Pod:
    where: str  # "Deployment/rel-baton-prefill"
    labels: dict
    spec: dict

    @property
    def component(self):
        return self.labels.get("app.kubernetes.io/component")

    @property
    def containers(self):
        return [*self.spec.get("initContainers", []), *self.spec["containers"]]

    @property
    def main(self):
        return self.spec["containers"][0]

    def ports(self):
        """Name -> number of the main container's ports."""
        return {port["name"]: port["containerPort"] for port in self.main.get("ports", [])}


def where_of(document):
    return f"{document['kind']}/{document['metadata']['name']}"


def matches(selector, labels):
    """A selector without labels matches all."""
    return all(labels.get(key) == value for key, value in (selector or {}).items())


class Release:
    def __init__(self, documents, external=()):
        self.documents = documents
        self.external = set(external)  # "Kind/name" of objects that the cluster must have
        self.pods = [Pod(where_of(each), each["spec"]["template"]["metadata"]["labels"], each["spec"]["template"]["spec"])
                     for each in self.of_kind("Deployment")]
        self.pods += [Pod(where_of(each), each["metadata"]["labels"], each["spec"]) for each in self.of_kind("Pod")]

    def of_kind(self, kind):
        return [document for document in self.documents if document["kind"] == kind]

    def find(self, kind, name):
        return next((each for each in self.of_kind(kind) if each["metadata"]["name"] == name), None)

    def pods_with(self, selector):
        return [pod for pod in self.pods if matches(selector, pod.labels)]

    def servers(self):
        """The pods of routers and workers."""
        return [pod for pod in self.pods if pod.component != "test"]

    def options(self, pod):
        """Option -> value: the config file's options with dots in their names, and the arguments. Values are texts."""
        found = {}
        if (name := config_map_of(pod)) and (config_map := self.find("ConfigMap", name)):
            found = flat(yaml.safe_load(config_map["data"]["config.yaml"]))
        for argument in pod.main.get("args", []):
            if match := re.match(r"--([a-z.-]+)=(.*)", argument):
                found[match[1]] = match[2]
        return found


def config_map_of(pod):
    return next((volume["configMap"]["name"] for volume in pod.spec.get("volumes", []) if volume["name"] == "config"), None)


def flat(options, prefix=""):
    found = {}
    for name, value in options.items():
        if isinstance(value, dict):
            found.update(flat(value, f"{prefix}{name}."))
        else:
            found[prefix + name] = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return found
