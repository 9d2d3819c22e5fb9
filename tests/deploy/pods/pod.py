# SPDX-License-Identifier: Apache-2.0
"""A pod: its address and files, its init containers, its container and the container's restarts."""

import pathlib
import random
import signal
import string
import threading
import time

import dns
import fields
import images
import memory
import network
import volumes
from running import Running

FOLDER = pathlib.Path("/run/pods")
BACKOFF_SECONDS = (0, 10, 20, 40, 80, 160, 300)  # before the first restart, the second, ...


def random_letters(count):
    return "".join(random.choices(string.ascii_lowercase + string.digits, k=count))


class Pod:
    """Starts at once, on a thread that ends with the pod. `cluster`: see cluster.py. `revision`: what the owner likes."""

    node, node_address = "node-1", network.NODE

    def __init__(self, name, namespace, labels, spec, cluster, owner=None, revision=None):
        self.name, self.namespace, self.labels, self.spec = name, namespace, labels, spec
        self.cluster, self.owner, self.revision = cluster, owner, revision
        self.folder = FOLDER / f"{name}.{random_letters(8)}"  # another cluster may have had a pod of this name
        self.log = self.folder / "log"
        self.address = None
        self.current = self.running = None  # the run of any container; the run of the main container
        self.lock = threading.Lock()  # a run starts before the pod's deletion, or not at all
        self.exits = []  # the statuses of ended runs
        self.terminating = threading.Event()
        self.gone = threading.Event()
        self.born = time.monotonic()
        threading.Thread(target=self.live, daemon=True).start()

    def __repr__(self):
        return f"{self.name}({'ready' if self.ready else 'not ready'}, exits {self.exits})"

    def ready_for(self, seconds):
        return self.running is not None and self.running.ready_for(seconds) and not self.terminating.is_set()

    @property
    def ready(self):
        return self.ready_for(0)

    @property
    def restarts(self):
        return len(self.exits)

    def note(self, text):
        self.cluster.note(f"{self.name}: {text}")

    def log_text(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    # Life.

    def live(self):
        netns, self.address = self.cluster.network.add()
        self.folder.mkdir(parents=True)
        try:
            self.run_containers(netns)
        except Exception as error:  # a wrong manifest, of which a test must hear
            self.note(f"cannot run: {error!r}")
            raise
        finally:
            self.cluster.network.remove(netns)
            self.gone.set()
            self.note("gone")

    def run_containers(self, netns):
        group = self.spec.get("securityContext", {}).get("fsGroup")
        folders = {each["name"]: volumes.make_volume(each, self.folder / "volumes" / each["name"], group, self.cluster)
                   for each in self.spec.get("volumes", [])}
        for manifest in self.spec.get("initContainers", []):
            self.keep_running(manifest, netns, folders, until_success=True)
        main, = self.spec["containers"]
        self.keep_running(main, netns, folders)

    def keep_running(self, manifest, netns, folders, until_success=False):
        """Runs a container again as the pod's policy says."""
        policy = "OnFailure" if until_success else self.spec.get("restartPolicy", "Always")
        for attempt in range(1000):
            delay = BACKOFF_SECONDS[min(attempt - 1, len(BACKOFF_SECONDS) - 1)] if attempt > 0 else 0
            if self.terminating.wait(delay / self.cluster.pace):
                return
            spec = self.container_spec(manifest, netns, folders)
            with self.lock:
                if self.terminating.is_set():
                    return
                self.current = running = Running(manifest, spec, self.log, self.address, self.cluster.pace, self.note)
                if not until_success:
                    self.running = running
                    running.watch_probes()
            status = running.wait()
            self.note(f"{manifest['name']} exited with {status}")
            if until_success and status == 0:
                return
            self.exits.append(status)
            if policy == "Never" or (policy == "OnFailure" and status == 0):
                return

    def container_spec(self, manifest, netns, folders):
        """The spec for container.py."""
        security = {**self.spec.get("securityContext", {}), **manifest.get("securityContext", {})}
        uid, gid = security.get("runAsUser", 0), security.get("runAsGroup", 0)
        if security.get("runAsNonRoot") and uid == 0:
            raise ValueError("runAsNonRoot, but the user is root")
        if security["capabilities"] != {"drop": ["ALL"]} or security["allowPrivilegeEscalation"] is not False:
            raise NotImplementedError("the harness drops all capabilities and privileges")
        image = images.image(manifest["image"])
        env = fields.environment(manifest, self, {"PATH": images.PATH})
        mounts = [[str(source), target, True] for source, target in image.mounts]
        mounts += [[str(self.own_file(name, text)), f"/etc/{name}", False] for name, text in self.etc_files().items()]
        mounts += [[str(folders[each["name"]]), each["mountPath"], each.get("readOnly", False)]
                   for each in manifest.get("volumeMounts", [])]
        limit = manifest.get("resources", {}).get("limits", {}).get("memory")
        group = memory.limited(f"{self.name}-{random_letters(4)}", fields.bytes_of(limit)) if limit else None
        return {"network": netns, "cgroup": str(group) if group else None, "mounts": mounts, "links": image.links,
                "read_only_root": security.get("readOnlyRootFilesystem", False), "hostname": self.name, "uid": uid, "gid": gid,
                "groups": [security["fsGroup"]] if "fsGroup" in security else [], "env": env,
                "working_dir": manifest.get("workingDir", "/"), "command": fields.command_line(manifest, env),
                "grace_seconds": self.spec.get("terminationGracePeriodSeconds", 30)}

    def etc_files(self):
        domains = " ".join(dns.search_domains(self.namespace))
        return {"resolv.conf": f"search {domains}\nnameserver {network.NODE}\noptions ndots:5\n",
                "hosts": f"127.0.0.1\tlocalhost\n{self.address}\t{self.name}\n", "hostname": f"{self.name}\n",
                "nsswitch.conf": "hosts: files dns\n"}

    def own_file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    # End.

    def delete(self):
        """Asks for the end of the pod, once, and does not wait."""
        with self.lock:
            if self.terminating.is_set():
                return
            self.note("deleted")
            self.terminating.set()
            if self.current is not None:
                grace = self.spec.get("terminationGracePeriodSeconds", 30)
                threading.Thread(target=self.current.end, args=[grace], daemon=True).start()

    def kill(self):
        with self.lock:
            self.terminating.set()
            if self.current is not None:
                self.current.send(signal.SIGKILL)
