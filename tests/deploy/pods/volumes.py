# SPDX-License-Identifier: Apache-2.0
"""The volumes of a pod, as folders of this machine."""

import base64
import os


def write_files(folder, files, mode, group):
    """`files`: name -> bytes. With a group of the pod's file systems, the group may read, too."""
    folder.mkdir(parents=True)
    for name, content in files.items():
        path = folder / name
        path.write_bytes(content)
        os.chown(path, 0, group or 0)
        path.chmod(mode | (0o040 if group is not None else 0))


def make_volume(volume, folder, group, objects):
    """The folder of a volume, made at `folder` if the volume is the pod's own.

    `group`: fsGroup or None. `objects`: has find(kind, name), and claims, the folders of PersistentVolumeClaims by name.
    """
    if "configMap" in volume:
        data = objects.find("ConfigMap", volume["configMap"]["name"])["data"]
        files = {name: text.encode() for name, text in data.items()}
        write_files(folder, files, volume["configMap"].get("defaultMode", 0o644), group)
    elif "secret" in volume:
        data = objects.find("Secret", volume["secret"]["secretName"])["data"]
        files = {name: base64.b64decode(text) for name, text in data.items()}
        write_files(folder, files, volume["secret"].get("defaultMode", 0o644), group)
    elif "emptyDir" in volume:
        folder.mkdir(parents=True)
        os.chown(folder, 0, group or 0)
        folder.chmod(0o777 if group is None else 0o2777)
    elif "persistentVolumeClaim" in volume:
        return objects.claims[volume["persistentVolumeClaim"]["claimName"]]
    elif "hostPath" in volume:
        return volume["hostPath"]["path"]
    else:
        raise NotImplementedError(f"the harness knows no such volume: {volume}")
    return folder
