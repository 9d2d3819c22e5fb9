# SPDX-License-Identifier: Apache-2.0
"""Fields of a pod whose values the kubelet computes: environment, arguments, amounts of memory."""

import re

REFERENCE = re.compile(r"\$\$|\$\(([-._A-Za-z0-9]+)\)")
UNITS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}


def expand(text, env):
    """Replaces $(NAME). A name that is not in `env` stays as written; $$ is a dollar sign."""
    return REFERENCE.sub(lambda match: "$" if match[0] == "$$" else env.get(match[1], match[0]), text)


def bytes_of(quantity):
    number, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", str(quantity)).groups()
    return int(float(number) * UNITS[unit])


def field(path, pod):
    """A field of the downward API."""
    if match := re.fullmatch(r"metadata\.labels\['(.*)'\]", path):
        return pod.labels[match[1]]
    return {"metadata.name": pod.name, "metadata.namespace": pod.namespace, "status.podIP": pod.address,
            "spec.nodeName": pod.node, "status.hostIP": pod.node_address}[path]


def environment(container, pod, image_env):
    """The variables of a container in `pod`: a manifest's variables may refer to variables before them."""
    env = {**image_env, "HOSTNAME": pod.name}
    for variable in container.get("env", []):
        if "valueFrom" in variable:
            env[variable["name"]] = field(variable["valueFrom"]["fieldRef"]["fieldPath"], pod)
        else:
            env[variable["name"]] = expand(variable.get("value", ""), env)
    return env


def command_line(container, env):
    return [expand(word, env) for word in [*container["command"], *container.get("args", [])]]
