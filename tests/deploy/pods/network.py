# SPDX-License-Identifier: Apache-2.0
"""The pods' network: a bridge, and for each pod a network namespace with an address of its own."""

import itertools
import subprocess
import threading

NODE = "10.88.0.1"  # the kubelet's address, which also answers for DNS


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, timeout=30, capture_output=True)


class Network:
    """One in each sandbox. No address comes twice: a connection to a pod that is gone must not find another pod."""

    def __init__(self):
        self.numbers = itertools.count(2)
        self.lock = threading.Lock()
        ip("link", "set", "lo", "up")
        # A bridge without an address of its own takes another with each port, and pods lose packets until they notice.
        ip("link", "add", "pods", "address", "02:00:00:00:00:01", "type", "bridge")
        ip("address", "add", f"{NODE}/16", "dev", "pods")
        ip("link", "set", "pods", "up")

    def add(self):
        """Returns the name of a new namespace, and its address."""
        with self.lock:
            number = next(self.numbers)
        name, address = f"pod{number}", f"10.88.{number // 250}.{number % 250 + 2}"
        ip("netns", "add", name)
        ip("link", "add", f"veth{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", f"veth{number}", "master", "pods", "up")
        ip("-n", name, "address", "add", f"{address}/16", "dev", "eth0")
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", name, "link", "set", "eth0", "up")
        return name, address

    def remove(self, name):
        ip("netns", "delete", name)
