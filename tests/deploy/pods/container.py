#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Becomes a container: container.py SPEC, where SPEC is JSON. pod.py writes the specs.

The process stays outside as the container's parent and ends with the status of the container's first process. A spec with
the key "join" runs a command in the namespaces of a container that runs: a probe.
"""

import json
import os
import signal
import socket
import sys

import linux

NAMESPACES = (linux.CLONE_NEWNS | linux.CLONE_NEWPID | linux.CLONE_NEWUTS | linux.CLONE_NEWIPC | linux.CLONE_NEWCGROUP)
ROOT = "/run/root"  # where a container's files are put together, in its own mount namespace
DEVICES = ("null", "zero", "full", "random", "urandom")
CANNOT_START = 128


def enter_new(spec):
    if spec["cgroup"]:
        with open(spec["cgroup"] + "/cgroup.procs", "w", encoding="ascii") as group:
            group.write("0")
    with open(f"/run/netns/{spec['network']}", encoding="ascii") as network:
        linux.setns(network.fileno(), linux.CLONE_NEWNET)
    linux.unshare(NAMESPACES)


def enter_running(pid):
    descriptor = os.pidfd_open(pid)
    linux.setns(descriptor, NAMESPACES | linux.CLONE_NEWNET)


def place(path, like):
    """Makes the mount point `path` in the new root: a file or a folder, as `like` is."""
    target = ROOT + path
    if os.path.isdir(like):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "x", encoding="ascii"):
            pass
    return target


def make_root(spec):
    """The image's files, the kernel's file systems, and the volumes, as a container's runtime mounts them."""
    linux.mount(None, "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    os.makedirs(ROOT, exist_ok=True)
    linux.mount("root", ROOT, "tmpfs", data="mode=755")
    for target, source in spec["links"].items():
        os.symlink(source, ROOT + target)
    for path, kind, flags, data in (("/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC, None),
                                    ("/sys", "sysfs", linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV, None),
                                    ("/dev", "tmpfs", linux.MS_NOSUID, "mode=755"),
                                    ("/dev/shm", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=1777,size=64m")):
        os.makedirs(ROOT + path, exist_ok=True)
        linux.mount(kind, ROOT + path, kind, flags, data)
    for device in DEVICES:
        linux.bind(f"/dev/{device}", place(f"/dev/{device}", f"/dev/{device}"), read_only=False)
    show_group(spec["cgroup"])
    for source, target, read_only in spec["mounts"]:
        linux.bind(source, place(target, source), read_only)
    if spec["read_only_root"]:
        linux.mount(None, ROOT, flags=linux.MS_BIND | linux.MS_REMOUNT | linux.MS_RDONLY)
    linux.change_root(ROOT)


def show_group(group):
    """A container sees its own memory group as the root of the hierarchy."""
    if group and group.startswith("/sys/fs/cgroup/memory/"):
        linux.mount("cgroup", ROOT + "/sys/fs/cgroup", "tmpfs", data="mode=755")
        os.mkdir(ROOT + "/sys/fs/cgroup/memory")
        linux.mount("cgroup", ROOT + "/sys/fs/cgroup/memory", "cgroup", linux.MS_RDONLY, "memory")
    elif group:
        linux.mount("cgroup", ROOT + "/sys/fs/cgroup", "cgroup2", linux.MS_RDONLY)


def become_user(spec):
    linux.drop_capabilities()
    os.setgroups(spec["groups"])
    os.setresgid(*[spec["gid"]] * 3)
    os.setresuid(*[spec["uid"]] * 3)
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)  # a change of the user clears an earlier setting


def run_first_process(spec):
    if "join" not in spec:
        make_root(spec)
        socket.sethostname(spec["hostname"])
    become_user(spec)
    os.chdir(spec["working_dir"])
    try:
        os.execvpe(spec["command"][0], spec["command"], spec["env"])
    except OSError as error:
        print(f"cannot start {spec['command'][0]}: {error.strerror}", flush=True)


def main():
    spec = json.loads(sys.argv[1])
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    if "join" in spec:
        enter_running(spec["join"])
    else:
        enter_new(spec)
    if "pid_to" in spec:
        os.set_inheritable(spec["pid_to"], False)
    child = os.fork()
    if child == 0:
        try:
            run_first_process(spec)
        finally:
            os._exit(CANNOT_START)
    if "pid_to" in spec:
        os.write(spec["pid_to"], f"{child}\n".encode())
        os.close(spec["pid_to"])
    _, status = os.waitpid(child, 0)
    os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


if __name__ == "__main__":
    main()
