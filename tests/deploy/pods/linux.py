# SPDX-License-Identifier: Apache-2.0
"""System calls that Python 3.11 lacks. A failed call raises OSError, which names the call."""

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MNT_DETACH = 0x2

PR_SET_PDEATHSIG = 1
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38

PIVOT_ROOT = 155  # number of the system call on x86-64

libc = ctypes.CDLL(None, use_errno=True)


def call(name, *arguments):
    converted = [each.encode() if isinstance(each, str) else ctypes.c_ulong(each) if isinstance(each, int) else each
                 for each in arguments]
    if getattr(libc, name)(*converted) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}{arguments}: {os.strerror(number)}")


def unshare(flags):
    call("unshare", flags)


def setns(descriptor, flags):
    call("setns", descriptor, flags)


def mount(source, target, kind=None, flags=0, data=None):
    call("mount", source, target, kind, flags, data)


def bind(source, target, read_only):
    """Shows `source` at `target`, a file or folder that exists."""
    mount(source, target, flags=MS_BIND | MS_REC)
    if read_only:
        mount(None, target, flags=MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)


def change_root(folder):
    """Makes `folder`, a mount, the root of this mount namespace, and forgets the old root."""
    os.chdir(folder)
    call("syscall", PIVOT_ROOT, ".", ".")
    call("umount2", ".", MNT_DETACH)
    os.chdir("/")


def prctl(option, value):
    call("prctl", option, value, 0, 0, 0)


def drop_capabilities():
    """No program that this process starts gets a capability."""
    for capability in range(int(open("/proc/sys/kernel/cap_last_cap", encoding="ascii").read()) + 1):
        prctl(PR_CAPBSET_DROP, capability)
