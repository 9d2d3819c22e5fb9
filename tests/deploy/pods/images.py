# SPDX-License-Identifier: Apache-2.0
"""The files of images. Debian's libraries are this machine's, as an image for this machine has them."""

import dataclasses
import os
import pathlib

import helm

PROGRAMS = ("baton", "baton-router", "baton-prefill", "baton-decode")
PATH = "/usr/local/bin:/usr/bin:/bin"
DEMO_MODEL = helm.ROOT / "models" / "demo-chat"


@dataclasses.dataclass
class Image:
    mounts: list  # of (source, target)
    links: dict  # path -> where the link leads


def baton():
    """Baton's programs and the demo model, without a shell."""
    binaries = pathlib.Path(os.environ["BATON_BIN"])
    return Image(mounts=[("/usr/lib", "/usr/lib"), ("/usr/lib64", "/usr/lib64"), ("/etc/ld.so.cache", "/etc/ld.so.cache"),
                         (str(DEMO_MODEL), "/usr/share/baton/models/demo-chat"),
                         *((str(binaries / name), f"/usr/local/bin/{name}") for name in PROGRAMS)],
                 links={"/lib": "usr/lib", "/lib64": "usr/lib64"})


def copier():
    """An image of a user that has the model in /demo, and programs of Debian to copy the model."""
    return Image(mounts=[("/usr", "/usr"), ("/etc/ld.so.cache", "/etc/ld.so.cache"), (str(DEMO_MODEL), "/demo")],
                 links={"/lib": "usr/lib", "/lib64": "usr/lib64", "/bin": "usr/bin"})


def image(reference):
    """The image of a reference such as baton:0.2.0."""
    return {"baton": baton, "copier": copier}[reference.partition(":")[0]]()
