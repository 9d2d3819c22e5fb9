# SPDX-License-Identifier: Apache-2.0
"""Runs the rest of a program in namespaces of its own, which end with the program however the program ends.

The parent waits outside. The child is the first process of a pid namespace: when the child dies, the kernel kills all other
processes of the namespace, and then frees the mounts and network devices. Two programs see nothing of each other.
"""

import os
import shutil
import signal
import sys

import linux
import memory

SKIPPED = 77


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def enter():
    """Returns in the child. The parent exits with the child's status."""
    if os.geteuid() != 0:
        skip("the pods need root, for namespaces and a bridge")
    if shutil.which("ip") is None:
        skip("ip is missing: install the package iproute2")
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        if not any(line.split()[4] == "/" for line in mounts):
            skip("the root folder is no mount point, as in a chroot")
    memory.remove_stale_groups()
    parent = os.getpid()
    try:
        linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWPID)
    except OSError as error:
        skip(f"this machine allows no namespaces: {error}")
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        settle(parent)
        return
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: os.kill(child, signal.SIGKILL))
    _, status = os.waitpid(child, 0)
    memory.remove_groups(parent)
    os._exit(os.waitstatus_to_exitcode(status) & 0xff)


def settle(parent):
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    linux.mount(None, "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("proc", "/proc", "proc")
    linux.mount("tmpfs", "/run", "tmpfs")  # names of network namespaces, and the pods' files
    memory.owner = parent
