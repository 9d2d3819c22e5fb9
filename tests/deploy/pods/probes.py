# SPDX-License-Identifier: Apache-2.0
"""A container's probes, as the kubelet runs them: each on a thread, with its period, timeout and thresholds."""

import os
import socket
import threading
import time
import urllib.request

os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"  # this program starts processes by exec alone
import grpc  # noqa: E402

SERVING = b"\x08\x01"  # HealthCheckResponse{status: SERVING}


def grpc_health(address, port, service, timeout):
    """Whether the health service says that `service` serves. An empty name asks for the whole server."""
    name = service.encode()
    request = b"\x0a" + bytes([len(name)]) + name if name else b""
    with grpc.insecure_channel(f"{address}:{port}", options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        try:
            return check(request, timeout=timeout) == SERVING
        except grpc.RpcError:
            return False


def http_get(address, port, path, timeout):
    try:
        with urllib.request.urlopen(f"http://{address}:{port}{path}", timeout=timeout) as answer:
            return 200 <= answer.status < 400
    except OSError:
        return False


def tcp_connect(address, port, timeout):
    try:
        socket.create_connection((address, port), timeout=timeout).close()
        return True
    except OSError:
        return False


def ask(probe, container, timeout):
    """Runs a probe once. `container`: has address, port(name or number) and run(command, timeout) -> status."""
    if "grpc" in probe:
        return grpc_health(container.address, probe["grpc"]["port"], probe["grpc"].get("service", ""), timeout)
    if "httpGet" in probe:
        get = probe["httpGet"]
        return http_get(container.address, container.port(get["port"]), get.get("path", "/"), timeout)
    if "tcpSocket" in probe:
        return tcp_connect(container.address, container.port(probe["tcpSocket"]["port"]), timeout)
    return container.run(probe["exec"]["command"], timeout) == 0


class Watch:
    """Asks a probe until stop() or the end of its container. `passed` is None before a threshold is reached.

    `changed(passed)` is called each time a threshold is reached. `pace`: how many times faster than real time.
    """

    def __init__(self, probe, container, changed, pace):
        self.probe, self.container, self.changed, self.pace = probe, container, changed, pace
        self.passed = None
        self.stopped = threading.Event()
        threading.Thread(target=self.run, daemon=True).start()

    def stop(self):
        self.stopped.set()

    def run(self):
        period = self.probe.get("periodSeconds", 10) / self.pace
        timeout = self.probe.get("timeoutSeconds", 1) / self.pace
        limits = {True: self.probe.get("successThreshold", 1), False: self.probe.get("failureThreshold", 3)}
        last, count = None, 0
        next_time = time.monotonic() + self.probe.get("initialDelaySeconds", 0) / self.pace
        while not self.stopped.wait(max(0, next_time - time.monotonic())):
            next_time = time.monotonic() + period
            result = ask(self.probe, self.container, timeout)
            if self.stopped.is_set():
                return
            count = count + 1 if result == last else 1
            last = result
            if count == limits[result]:
                self.passed = result
                self.changed(result)
