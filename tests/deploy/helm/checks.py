# SPDX-License-Identifier: Apache-2.0
"""Checks of a rendered release. Each check yields a text per problem, which names the object."""

import re

from helm import ROOT
from release import config_map_of, matches, where_of

DNS_SECONDS = 7  # CoreDNS gives an old answer for 5 s, a router asks each second, and a probe of a pair takes a moment
DRAIN_MARGIN_SECONDS = 5  # a worker takes up to 5 s more to end what its drain cut off


def selectors(release):
    """Every selector finds pods, and a Deployment finds its own."""
    for document in release.of_kind("Deployment"):
        labels = document["spec"]["template"]["metadata"]["labels"]
        if not matches(document["spec"]["selector"]["matchLabels"], labels):
            yield f"{where_of(document)}: the selector does not match the labels of its pods"
    for kind, selector_of in (("Service", lambda spec: spec["selector"]),
                              ("PodDisruptionBudget", lambda spec: spec["selector"]["matchLabels"]),
                              ("NetworkPolicy", lambda spec: spec["podSelector"].get("matchLabels")),
                              ("PodMonitor", lambda spec: spec["selector"]["matchLabels"])):
        for document in release.of_kind(kind):
            if not release.pods_with(selector_of(document["spec"])):
                yield f"{where_of(document)}: the selector finds no pod"
    for document in release.of_kind("ServiceMonitor"):
        wanted = document["spec"]["selector"]["matchLabels"]
        services = [each for each in release.of_kind("Service") if matches(wanted, each["metadata"]["labels"])]
        monitored = {pod.where for each in services for pod in release.pods_with(each["spec"]["selector"])}
        for pod in release.servers():
            if pod.where not in monitored:
                yield f"{where_of(document)}: no selected Service has the pods of {pod.where}"


def service_ports(release):
    """What connects to a Service finds its port, and the Service finds the port of its pods."""
    for service in release.of_kind("Service"):
        for port in service["spec"]["ports"]:
            for pod in release.pods_with(service["spec"]["selector"]):
                if port["targetPort"] not in pod.ports() and port["targetPort"] not in pod.ports().values():
                    yield f"{where_of(service)}: {pod.where} has no port {port['targetPort']}"
    for route in release.of_kind("GRPCRoute"):
        for rule in route["spec"]["rules"]:
            for backend in rule["backendRefs"]:
                yield from backend_problems(release, where_of(route), backend["name"], backend["port"])
    for ingress in release.of_kind("Ingress"):
        for rule in ingress["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                backend = path["backend"]["service"]
                port = backend["port"].get("name", backend["port"].get("number"))
                yield from backend_problems(release, where_of(ingress), backend["name"], port)
    for pod in release.pods_with({"app.kubernetes.io/component": "test"}):
        target = re.fullmatch(r"(.*):(\d+)", release.options(pod)["target"])
        yield from backend_problems(release, pod.where, target[1], int(target[2]))
    yield from scraped_ports(release)


def scraped_ports(release):
    for document in release.of_kind("PodMonitor"):
        for endpoint in document["spec"]["podMetricsEndpoints"]:
            for pod in release.servers():
                if endpoint["port"] not in pod.ports():
                    yield f"{where_of(document)}: {pod.where} has no port {endpoint['port']}"
    for document in release.of_kind("ServiceMonitor"):
        wanted = document["spec"]["selector"]["matchLabels"]
        for service in release.of_kind("Service"):
            ports = {port["name"] for port in service["spec"]["ports"]}
            for endpoint in document["spec"]["endpoints"]:
                if matches(wanted, service["metadata"]["labels"]) and endpoint["port"] not in ports:
                    yield f"{where_of(document)}: {where_of(service)} has no port {endpoint['port']}"


def backend_problems(release, where, name, port):
    service = release.find("Service", name)
    ports = service["spec"]["ports"] if service else []
    if not any(port in (each["port"], each["name"]) for each in ports):
        yield f"{where}: no Service {name} has the port {port}"


def workers_of_routers(release):
    """Every pool is named once by every router, through a headless Service that shows pods before they are ready."""
    pools = {pod.where for pod in release.servers() if pod.component != "router"}
    for router in release.pods_with({"app.kubernetes.io/component": "router"}):
        found = set()
        for address in release.options(router).get("workers", "").split(","):
            match = re.fullmatch(r"dns:///([a-z0-9-]+):(\d+)", address)
            service = release.find("Service", match[1]) if match else None
            if service is None:
                yield f"{router.where}: no Service has the address {address}"
                continue
            spec = service["spec"]
            if spec.get("clusterIP") != "None" or spec.get("publishNotReadyAddresses") is not True:
                yield f"{where_of(service)}: routers need a headless Service with publishNotReadyAddresses"
            for pod in release.pods_with(spec["selector"]):
                found.add(pod.where)
                if pod.ports().get("grpc") != int(match[2]):
                    yield f"{router.where}: {address} is not the gRPC port of {pod.where}"
        for pool in sorted(pools - found):
            yield f"{router.where}: no address in --workers finds {pool}"


def rollouts(release):
    """Routers learn of a new worker before an old one drains."""
    for document in release.of_kind("Deployment"):
        component = document["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]
        if component != "router" and document["spec"].get("minReadySeconds", 0) < DNS_SECONDS:
            yield f"{where_of(document)}: minReadySeconds is less than DNS and discovery take, {DNS_SECONDS} s"


def ports_and_probes(release):
    """A program listens on the ports of its container, and probes ask where something answers."""
    services = set(re.findall(r"^service (\w+)", proto_text(), re.MULTILINE))
    for pod in release.servers():
        options, ports = release.options(pod), pod.ports()
        listened = {"grpc": "listen", "metrics": "metrics-listen", "handoff": "handoff-listen"}
        for name in {*ports, *(port for port, option in listened.items() if option in options)}:
            address = options.get(listened.get(name), "")
            if not re.fullmatch(r"(0\.0\.0\.0|\[::\]):" + str(ports.get(name)), address):
                yield f"{pod.where}: the port {name} is {ports.get(name)}, but the program listens on \"{address}\""
        for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
            yield from probe_problems(pod, kind, pod.main.get(kind), services)
        if pod.component == "router" and "grpc" in pod.main.get("livenessProbe", {}):
            yield f"{pod.where}: livenessProbe asks for gRPC health, which a router without a ready pair denies"
        if pod.component != "router" and "terminationGracePeriodSeconds" not in pod.main.get("livenessProbe", {}):
            yield f"{pod.where}: a worker that hangs is given the whole grace period of the pod to drain"
        if "grpc" not in pod.main.get("readinessProbe", {}):
            yield f"{pod.where}: readinessProbe does not ask for gRPC health"


def probe_problems(pod, kind, probe, services):
    if probe is None:
        yield f"{pod.where}: no {kind}"
    elif "grpc" in probe:
        if probe["grpc"]["port"] != pod.ports().get("grpc"):
            yield f"{pod.where}: {kind} asks the port {probe['grpc']['port']}, which is not the gRPC port"
        name = probe["grpc"].get("service", "")
        if name and not (name.startswith("baton.v1.") and name.removeprefix("baton.v1.") in services):
            yield f"{pod.where}: {kind} asks for {name}, which no program serves"
    elif probe.get("httpGet", {}).get("path") != "/metrics" or probe["httpGet"]["port"] != "metrics":
        yield f"{pod.where}: {kind} asks for a page that no program serves"


def proto_text():
    return "".join(path.read_text() for path in sorted((ROOT / "proto" / "baton" / "v1").glob("*.proto")))


def references(release):
    """Every object that a pod or another object names is rendered, or external."""
    for pod in release.pods:
        volumes = {volume["name"]: volume for volume in pod.spec.get("volumes", [])}
        wanted = [("ServiceAccount", pod.spec["serviceAccountName"])]
        wanted += [("Secret", each["name"]) for each in pod.spec.get("imagePullSecrets", [])]
        for volume in volumes.values():
            wanted += [("ConfigMap", volume["configMap"]["name"])] if "configMap" in volume else []
            wanted += [("Secret", volume["secret"]["secretName"])] if "secret" in volume else []
            if "persistentVolumeClaim" in volume:
                wanted.append(("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]))
        for container in pod.containers:
            wanted += references_of_environment(container)
            defined = {each["name"] for each in container.get("env", [])}
            for name in re.findall(r"\$\((\w+)\)", " ".join(container.get("args", []))):
                if name not in defined:
                    yield f"{pod.where}: the arguments have $({name}), which is no variable"
            for mount in container.get("volumeMounts", []):
                if mount["name"] not in volumes:
                    yield f"{pod.where}: no volume has the name {mount['name']}"
        for kind, name in wanted:
            yield from missing(release, pod.where, kind, name)
    for pod in release.servers():
        if not release.find("ConfigMap", config_map_of(pod) or ""):
            yield f"{pod.where}: no ConfigMap has the options"
        yield from secret_file_problems(release, pod)
    for document in release.of_kind("Ingress"):
        for entry in document["spec"].get("tls", []):
            yield from missing(release, where_of(document), "Secret", entry["secretName"])
    for kind in ("HorizontalPodAutoscaler", "ScaledObject"):
        for document in release.of_kind(kind):
            name = document["spec"]["scaleTargetRef"]["name"]
            yield from missing(release, where_of(document), "Deployment", name)
            target = release.find("Deployment", name)
            if target and "replicas" in target["spec"]:
                yield f"{where_of(document)}: {where_of(target)} sets replicas, too"


def references_of_environment(container):
    kinds = {"secretKeyRef": "Secret", "configMapKeyRef": "ConfigMap"}
    return [(kind, entry["valueFrom"][field]["name"]) for entry in container.get("env", [])
            for field, kind in kinds.items() if field in entry.get("valueFrom", {})]


def missing(release, where, kind, name):
    built_in = (kind, name) == ("ServiceAccount", "default")
    if not built_in and not release.find(kind, name) and f"{kind}/{name}" not in release.external:
        yield f"{where}: {kind}/{name} is neither rendered nor external"


def secret_file_problems(release, pod):
    path = release.options(pod).get("secret-file")
    if path is None:
        if pod.component != "router":
            yield f"{pod.where}: no secret-file"
        return
    mount = next((each for each in pod.main["volumeMounts"] if path.startswith(each["mountPath"] + "/")), None)
    volume = next((each for each in pod.spec["volumes"] if mount and each["name"] == mount["name"]), {})
    if "secret" not in volume:
        yield f"{pod.where}: no Secret is mounted at {path}"
    elif (secret := release.find("Secret", volume["secret"]["secretName"])) and path.rpartition("/")[2] not in secret["data"]:
        yield f"{pod.where}: {where_of(secret)} has no key for {path}"


def security(release):
    """No container runs as root, writes to its root file system, or has a capability or a token."""
    for pod in release.pods:
        context = pod.spec.get("securityContext", {})
        if context.get("runAsNonRoot") is not True or not context.get("runAsUser"):
            yield f"{pod.where}: the pod may run as root"
        if context.get("seccompProfile", {}).get("type") != "RuntimeDefault":
            yield f"{pod.where}: no seccomp profile"
        if pod.spec.get("automountServiceAccountToken") is not False:
            yield f"{pod.where}: the pod gets a token of its ServiceAccount"
        if any(pod.spec.get(name) for name in ("hostNetwork", "hostPID", "hostIPC")):
            yield f"{pod.where}: the pod shares namespaces with its host"
        for container in pod.containers:
            own = container.get("securityContext", {})
            where = f"{pod.where}: container {container.get('name')}"
            if own.get("readOnlyRootFilesystem") is not True:
                yield f"{where} may write to its root file system"
            if own.get("allowPrivilegeEscalation") is not False or own.get("privileged"):
                yield f"{where} may get more privileges"
            if own.get("capabilities") != {"drop": ["ALL"]}:
                yield f"{where} has capabilities"
            if own.get("runAsUser", 1) == 0 or own.get("runAsNonRoot") is False:
                yield f"{where} runs as root"


def seconds_of(duration):
    return int(duration.removesuffix("s"))


def drain(release):
    """Kubernetes does not kill a program that still drains."""
    for pod in release.servers():
        options = release.options(pod)
        delay = seconds_of(options.get("drain-delay", "0s"))
        drain_timeout = options.get("drain-timeout")
        if drain_timeout is None:
            yield f"{pod.where}: no drain-timeout"
            continue
        needed = delay + seconds_of(drain_timeout) + DRAIN_MARGIN_SECONDS
        if pod.spec.get("terminationGracePeriodSeconds", 30) < needed:
            yield f"{pod.where}: terminationGracePeriodSeconds is less than the drain needs, {needed} s"


def network_policies(release):
    """Workers hear workers on all ports, routers on the gRPC port, and nobody else but for metrics."""
    policies = release.of_kind("NetworkPolicy")
    for pod in release.servers() if policies else []:
        own = [each for each in policies if matches(each["spec"]["podSelector"].get("matchLabels"), pod.labels)]
        if not own:
            yield f"{pod.where}: no NetworkPolicy selects the pod"
        for policy in own:
            for rule in policy["spec"]["ingress"]:
                yield from rule_problems(release, pod, where_of(policy), rule)


def rule_problems(release, pod, where, rule):
    ports = [port.get("port") for port in rule.get("ports", [{}])]
    for port in ports:
        if port is not None and port not in pod.ports():
            yield f"{where}: {pod.where} has no port {port}"
    if not rule.get("from"):
        yield f"{where}: a rule is open to everybody"
    if pod.component == "router" or ports == ["metrics"]:
        return
    for peer in rule.get("from", []):
        found = release.pods_with(peer["podSelector"].get("matchLabels")) if set(peer) == {"podSelector"} else []
        allowed = {"router"} if ports == ["grpc"] else {"prefill", "decode", "both"}
        if not found or not {each.component for each in found} <= allowed:
            yield f"{where}: a rule for {ports} lets in more than {', '.join(sorted(allowed))}"


def names(release):
    """Names are unique, and short enough for a DNS label."""
    seen = set()
    for document in release.documents:
        where = where_of(document)
        if where in seen:
            yield f"{where}: rendered twice"
        seen.add(where)
        if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", document["metadata"]["name"]):
            yield f"{where}: not a DNS label"


CHECKS = (selectors, service_ports, workers_of_routers, rollouts, ports_and_probes, references, security, drain, network_policies,
          names)


def problems_of(release):
    return [problem for check in CHECKS for problem in check(release)]
