# SPDX-License-Identifier: Apache-2.0
"""Runs programs in a folder as a container runtime does: read-only root, user 65532, no capabilities."""

import ctypes
import fcntl
import os
import socket
import struct
import subprocess

USER = 65532
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
LAST_CAPABILITY = 63

libc = ctypes.CDLL(None, use_errno=True)


def bring_loopback_up():
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def mount(*words):
    subprocess.run(["mount", *map(str, words)], check=True, timeout=10)


def mount_root(root):
    """Mounts end with the mount namespace of this process."""
    mount("--bind", root, root)
    mount("-o", "remount,bind,ro", root)
    mount("-t", "proc", "proc", root / "proc")
    mount("-t", "sysfs", "-o", "ro", "sysfs", root / "sys")
    for device in ("null", "urandom"):
        mount("--bind", f"/dev/{device}", root / "dev" / device)


def start(root, command, **options):
    def enter():
        os.chroot(root)
        os.chdir("/")
        for capability in range(LAST_CAPABILITY + 1):
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails for a number that the kernel lacks
        os.setgroups([])
        os.setgid(USER)
        os.setuid(USER)
        if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "PR_SET_NO_NEW_PRIVS")

    # pylint: disable-next=subprocess-popen-preexec-fn
    return subprocess.Popen(command, preexec_fn=enter, stdin=subprocess.DEVNULL, text=True, **options)


def rights(process):
    """Uid, capabilities and no_new_privs of a process, from /proc."""
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    return {name: fields[name].split()[0] for name in ("Uid", "CapInh", "CapPrm", "CapEff", "CapBnd", "NoNewPrivs")}
