# SPDX-License-Identifier: Apache-2.0
"""A DNS server for the names of Services and pods, over UDP."""

import random
import socket
import struct
import threading

DOMAIN = "cluster.local"
TYPE_A = 1
NO_ERROR, NO_SUCH_NAME = 0, 3
TTL_SECONDS = 5  # as CoreDNS says for Services


def search_domains(namespace):
    return [f"{namespace}.svc.{DOMAIN}", f"svc.{DOMAIN}", DOMAIN]


def question(message):
    """(name, type, the question's bytes) of a query. struct.error or IndexError: not a query."""
    labels, at = [], 12
    while (length := message[at]) != 0:
        labels.append(message[at + 1:at + 1 + length].decode("ascii", "replace").lower())
        at += 1 + length
    kind, = struct.unpack_from("!H", message, at + 1)
    return ".".join(labels), kind, message[12:at + 5]


def reply(message, addresses):
    """`addresses`: IPv4 addresses of the name, or None if there is no such name."""
    _, kind, asked = question(message)
    found = list(addresses or ()) if kind == TYPE_A else []
    random.shuffle(found)
    flags = 0x8580 | (NO_SUCH_NAME if addresses is None else NO_ERROR)  # an answer of the authority
    header = message[:2] + struct.pack("!HHHHH", flags, 1, len(found), 0, 0)
    records = [struct.pack("!HHHIH", 0xc00c, TYPE_A, 1, TTL_SECONDS, 4) + socket.inet_aton(each) for each in found]
    return header + asked + b"".join(records)


class Server:
    """Answers on a thread until close(). `lookup`: full name without the last dot -> addresses or None."""

    def __init__(self, address, lookup):
        self.lookup = lookup
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 53))
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            message, sender = self.socket.recvfrom(4096)
            if not message:
                return
            try:
                answer = reply(message, self.lookup(question(message)[0]))
            except (struct.error, IndexError):
                continue
            self.socket.sendto(answer, sender)

    def close(self):
        """An empty message ends the thread."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self.socket.getsockname())
        self.thread.join(timeout=10)
        self.socket.close()
