# SPDX-License-Identifier: Apache-2.0
"""Checks an object's fields against the API of a version of Kubernetes: unknown and missing fields, and types.

The fields come from the generated classes of Kubernetes' JavaScript client, a .js and a .d.ts file per class.
"""

import functools
import json
import pathlib
import re

import custom_resources
from helm import TOOLS
from jsonschema import Draft7Validator

CLASSES = {
    ("v1", "ConfigMap"): "V1ConfigMap",
    ("v1", "Pod"): "V1Pod",
    ("v1", "Secret"): "V1Secret",
    ("v1", "Service"): "V1Service",
    ("v1", "ServiceAccount"): "V1ServiceAccount",
    ("apps/v1", "Deployment"): "V1Deployment",
    ("autoscaling/v2", "HorizontalPodAutoscaler"): "V2HorizontalPodAutoscaler",
    ("networking.k8s.io/v1", "Ingress"): "V1Ingress",
    ("networking.k8s.io/v1", "NetworkPolicy"): "V1NetworkPolicy",
    ("policy/v1", "PodDisruptionBudget"): "V1PodDisruptionBudget",
}
# Fields that an API server of an earlier version drops: the feature was off, although the API has the field.
SINCE = {("V1LifecycleHandler", "sleep"): (1, 30), ("V1Volume", "image"): (1, 31)}
ATTRIBUTES = re.compile(r"\.attributeTypeMap = (\[.*?\n\]);", re.DOTALL)
PROPERTY = re.compile(r"^    '(\w+)'(\??): ", re.MULTILINE)
SCALARS = {"string": (str,), "Date": (str,), "number": (int, float), "boolean": (bool,), "IntOrString": (int, str)}


class Fields:
    def __init__(self, kube_version):
        self.version = tuple(int(part) for part in kube_version.split("."))
        # Between two releases, stable kinds only gain fields: the older API serves for the first releases.
        folder = TOOLS["kubernetes-1.29" if self.version < (1, 31) else "kubernetes-1.34"]
        self.files = {path.name.lower(): path for path in pathlib.Path(folder).iterdir()}
        self.class_of = functools.lru_cache(maxsize=None)(self._read_class)

    def _read_class(self, name):
        """Field -> (type, required), or None for a name that is no class."""
        code, types = (self.files.get(f"{name.lower()}{suffix}") for suffix in (".js", ".d.ts"))
        if code is None:
            return None
        attributes = json.loads(ATTRIBUTES.search(code.read_text())[1])
        optional = {match[1]: match[2] == "?" for match in PROPERTY.finditer(types.read_text())}
        return {each["baseName"]: (each["type"], not optional[each["name"]]) for each in attributes}

    def problems(self, document):
        kind = (document.get("apiVersion"), document.get("kind"))
        where = f"{kind[1]}/{document.get('metadata', {}).get('name')}"
        if kind in CLASSES:
            yield from self._check(document, CLASSES[kind], where)
        elif kind in custom_resources.SCHEMAS:
            for error in Draft7Validator(custom_resources.SCHEMAS[kind]).iter_errors(document):
                yield f"{where}.{'.'.join(str(part) for part in error.path)}: {error.message}"
        else:
            yield f"{where}: no kind {kind[1]} of {kind[0]} is known from Kubernetes 1.29 to 1.35"

    def _check(self, value, type_name, where):
        if match := re.fullmatch(r"Array<(.*)>", type_name):
            if not isinstance(value, list):
                yield f"{where}: expected a list, not {value!r}"
                return
            for index, element in enumerate(value):
                yield from self._check(element, match[1], f"{where}[{index}]")
        elif match := re.fullmatch(r"\{ \[key: string\]: (.*?);? ?\}", type_name):
            if not isinstance(value, dict):
                yield f"{where}: expected a map, not {value!r}"
                return
            for key, element in value.items():
                yield from self._check(element, match[1], f"{where}.{key}")
        elif type_name in SCALARS:
            wrong_bool = isinstance(value, bool) and type_name != "boolean"
            if wrong_bool or not isinstance(value, SCALARS[type_name]):
                yield f"{where}: expected {type_name}, not {value!r}"
        elif (fields := self.class_of(type_name)) is not None:
            yield from self._check_class(value, type_name, fields, where)
        elif type_name not in {"any", "object"}:
            yield f"{where}: the type {type_name} is unknown"

    def _check_class(self, value, type_name, fields, where):
        if not isinstance(value, dict):
            yield f"{where}: expected fields of {type_name}, not {value!r}"
            return
        for name, element in value.items():
            if name not in fields:
                yield f"{where}: {type_name} has no field {name} in Kubernetes {'.'.join(map(str, self.version))}"
            elif self.version < SINCE.get((type_name, name), (0,)):
                yield f"{where}: Kubernetes {'.'.join(map(str, self.version))} drops the field {name}"
            else:
                yield from self._check(element, fields[name][0], f"{where}.{name}")
        for name, (_, required) in fields.items():
            if required and name not in value:
                yield f"{where}: the field {name} is required"
