# SPDX-License-Identifier: Apache-2.0
"""The controller of Deployments: keeps the pods of a Deployment as its spec says, step by step."""

import hashlib
import json
import math

from pod import Pod, random_letters


def share(value, replicas, rounded):
    """A number of pods from a number or a percentage."""
    return rounded(int(value.rstrip("%")) * replicas / 100) if isinstance(value, str) else value


def revision_of(deployment):
    return hashlib.sha256(json.dumps(deployment["spec"]["template"], sort_keys=True).encode()).hexdigest()[:10]


def strategy_of(deployment):
    """(most pods beyond the replicas, most pods that may be missing)."""
    replicas, update = deployment["spec"].get("replicas", 1), deployment["spec"]["strategy"]["rollingUpdate"]
    return share(update["maxSurge"], replicas, math.ceil), share(update["maxUnavailable"], replicas, math.floor)


def reconcile(deployment, pods, cluster):
    """One step of a Deployment. Returns new pods; pods that are too many are deleted. `pods`: the Deployment's."""
    replicas, revision = deployment["spec"].get("replicas", 1), revision_of(deployment)
    surge, unavailable = strategy_of(deployment)
    alive = [pod for pod in pods if not pod.terminating.is_set()]
    new, old = [pod for pod in alive if pod.revision == revision], [pod for pod in alive if pod.revision != revision]
    # An old pod that is not ready goes at once; a ready pod goes when enough others are available.
    least_seconds = deployment["spec"].get("minReadySeconds", 0) / cluster.pace
    available = sum(pod.ready_for(least_seconds) for pod in alive)
    surplus = [*old, *sorted(new, key=lambda pod: (pod.ready, -pod.born))[:max(0, len(new) - replicas)]]
    for pod in sorted(surplus, key=lambda pod: pod.ready):
        if pod.ready and available - pod.ready_for(least_seconds) < replicas - unavailable:
            break
        available -= pod.ready_for(least_seconds)
        pod.delete()
    wanted = min(replicas - len(new), replicas + surge - sum(not pod.terminating.is_set() for pod in alive))
    return [make_pod(deployment, revision, cluster) for _ in range(max(0, wanted))]


def make_pod(deployment, revision, cluster):
    template, meta = deployment["spec"]["template"], deployment["metadata"]
    name = f"{meta['name']}-{revision}-{random_letters(5)}"
    return Pod(name, cluster.namespace, template["metadata"]["labels"], template["spec"], cluster, owner=meta["name"],
               revision=revision)


def rolled_out(deployment, pods):
    """Whether the ready pods of the newest revision are all that is left."""
    return (len(pods) == deployment["spec"].get("replicas", 1)
            and all(pod.ready and pod.revision == revision_of(deployment) for pod in pods))
