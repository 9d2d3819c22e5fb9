# SPDX-License-Identifier: Apache-2.0
"""What docs/metrics.md says about metrics, and what a PromQL expression names. promtool checks the syntax; this module
finds names that no process serves."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]
DASHBOARDS = ROOT / "deploy" / "grafana"
RULES = ROOT / "deploy" / "prometheus" / "baton.rules.yaml"

# Labels that Prometheus adds to each series; discovery in Kubernetes adds `namespace`.
SCRAPED = {"job", "instance", "namespace"}
STATUS_CODES = {"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
                "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
                "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"}
WORDS = {"and", "or", "unless", "on", "by", "without", "group_left", "group_right", "ignoring", "offset", "bool",
         "sum", "min", "max", "count", "rate", "increase", "histogram_quantile", "clamp_min", "label_replace", "vector",
         "absent", "time", "max_over_time"}
LABEL_LIST = re.compile(r"\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)")
SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)\s*\{([^}]*)\}")
MATCHER = re.compile(r"\s*(\w+)\s*(=~|!~|!=|=)\s*\"((?:[^\"\\]|\\.)*)\"\s*(?:,|$)")
NAME = re.compile(r"[a-zA-Z_:][\w:]*")


def table_rows(text):
    for line in text.splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


class Documented:
    """Metrics by the names of their series: labels and, of buckets, the boundaries."""

    def __init__(self):
        text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
        boundaries = {row[1]: row[2].rstrip(" |").split(", ") for row in table_rows(text) if len(row) == 3}
        self.labels = {"up": set(SCRAPED)}
        self.boundaries = {}
        for row in table_rows(text):
            if len(row) == 6 and row[0].startswith("`"):
                name, labels = row[0].strip("`"), {label for label in row[2].split(", ") if label} | SCRAPED
                if row[1] == "histogram":
                    self.labels.update({f"{name}_count": labels, f"{name}_sum": labels, f"{name}_bucket": labels | {"le"}})
                    self.boundaries[f"{name}_bucket"] = boundaries[row[4]]
                else:
                    self.labels[name] = labels
        self.values = {}  # of labels with few values
        for row in table_rows(text):
            if len(row) == 2 and row[0].startswith("`"):
                for label in re.findall(r"`(\w+)`(?= of|$|,)", row[0]):
                    self.values.setdefault(label, set()).update(re.findall(r"`(\w+)`", row[1]))
        self.values["outcome"] |= STATUS_CODES
        del self.values["model"]

    def add(self, name, labels):
        self.labels.setdefault(name, set()).update(labels)


def matchers_of(text):
    found, end = [], 0
    while match := MATCHER.match(text, end):
        found.append(match.groups())
        end = match.end()
    return found, text[end:].strip()


def errors(expression, documented):
    """What the expression names and docs/metrics.md does not, one text each."""
    expression = re.sub(r"#.*", "", expression)
    found, known = [], set()
    for name, text in SELECTOR.findall(expression):
        labels = documented.labels.get(name, set())
        matchers, rest = matchers_of(text)
        if rest:
            found.append(f"cannot read the matchers of {name}: {rest}")
        for label, _, value in matchers:
            found += [f"{name} has no label {label}"] if name in documented.labels and label not in labels else []
            found += value_errors(name, label, value, documented)
    bare = SELECTOR.sub(lambda match: match[1], expression)
    lists = {label.strip() for text in LABEL_LIST.findall(bare) for label in text.split(",") if label.strip()}
    bare = LABEL_LIST.sub("", re.sub(r'"[^"]*"|\[[^\]]*\]|\b\d[\w.]*', "", bare))
    for name in sorted(set(NAME.findall(bare)) - WORDS):
        if name not in documented.labels:
            found.append(f"no metric {name}")
        known |= documented.labels.get(name, set())
    return found + [f"no metric of the expression has the label {label}" for label in sorted(lists - known)]


def value_errors(name, label, pattern, documented):
    if pattern.startswith("$"):
        return []
    words = [word.replace("\\\\", "\\") for word in pattern.split("|")]
    if label == "le":
        exact = [word for word in words if "\\." not in word]
        return [f"{name} has no boundary {word}" for word in exact if word not in documented.boundaries.get(name, [])]
    return [f"label {label} has no value {word}" for word in words
            if label in documented.values and word not in documented.values[label]]
