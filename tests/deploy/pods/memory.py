# SPDX-License-Identifier: Apache-2.0
"""Memory limits of containers: groups in cgroup v1 or v2, if the machine has a memory controller that root may use."""

import contextlib
import os
import pathlib

PREFIX = "baton-pods-"
owner = os.getpid()  # outside of the sandbox: names this run's groups

V1, V2 = pathlib.Path("/sys/fs/cgroup/memory"), pathlib.Path("/sys/fs/cgroup")


def hierarchy():
    """(folder, name of the file with a group's limit), or None."""
    if (V1 / "memory.limit_in_bytes").exists():
        return V1, "memory.limit_in_bytes"
    controllers = V2 / "cgroup.controllers"
    if controllers.exists() and "memory" in controllers.read_text().split():
        return V2, "memory.max"
    return None


def usable():
    """Whether this run can limit memory."""
    try:
        return limited("usable", 1 << 28) is not None
    except OSError:
        return False


def limited(name, limit_bytes):
    """Makes a group below this run's group. Returns the group's folder, or None without a memory controller."""
    found = hierarchy()
    if found is None:
        return None
    top, limit = found
    own = top / f"{PREFIX}{owner}"
    own.mkdir(exist_ok=True)
    if top == V2:
        for folder in (top, own):
            (folder / "cgroup.subtree_control").write_text("+memory")
    group = own / name
    group.mkdir()
    (group / limit).write_text(str(limit_bytes))
    return group


def remove_groups(pid):
    if (found := hierarchy()) is None:
        return
    own = found[0] / f"{PREFIX}{pid}"
    for group in [*own.glob("*/"), own]:
        with contextlib.suppress(OSError):  # does not exist
            group.rmdir()


def remove_stale_groups():
    """Removes the groups of runs that were killed."""
    if (found := hierarchy()) is None:
        return
    for own in found[0].glob(f"{PREFIX}*"):
        pid = own.name.removeprefix(PREFIX)
        if not pathlib.Path(f"/proc/{pid}").exists():
            remove_groups(pid)
