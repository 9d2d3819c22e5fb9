# SPDX-License-Identifier: Apache-2.0
"""Turns short descriptions of dashboards into Grafana's JSON (schema version 38: Grafana 10 reads the JSON, later
versions migrate the JSON).

A dashboard is a list of rows, a row is a title and a list of panels. Panels fill the 24 columns of the grid from left to
right, in lines of equal height.
"""

import dataclasses

SCHEMA_VERSION = 38
COLUMNS = 24
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
ORANGE, RED, GREEN = "orange", "red", "green"


@dataclasses.dataclass
class Panel:
    title: str
    unit: str
    description: str
    queries: dict  # legend -> expression
    width: int = 12
    height: int = 8
    kind: str = "timeseries"  # or stat, or table
    stack: bool = False
    most: float = None  # the axis ends here
    colors: tuple = ()  # (from value, color) of a stat, in ascending order
    no_value: str = ""


def variable(name, label, query):
    """A variable with all values by default. The pattern .* also fits series without the label."""
    return {"name": name, "label": label, "type": "query", "datasource": DATASOURCE, "definition": query,
            "query": {"query": query, "refId": "StandardVariableQuery"}, "refresh": 2, "sort": 1, "regex": "", "hide": 0,
            "multi": True, "includeAll": True, "allValue": ".*", "skipUrlSync": False, "options": [],
            "current": {"selected": True, "text": ["All"], "value": ["$__all"]}}


VARIABLES = [
    {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "regex": "", "hide": 0,
     "refresh": 1, "multi": False, "includeAll": False, "skipUrlSync": False, "options": [],
     "current": {"selected": False, "text": "default", "value": "default"}},
    variable("namespace", "Namespace", "label_values(baton_build_info, namespace)"),
    variable("model", "Model", "label_values(baton_worker_kv_pages, model)"),
    variable("pool", "Pool", "label_values(baton_worker_kv_pages, role)"),
]


def targets(panel):
    made = []
    for i, (legend, expression) in enumerate(panel.queries.items()):
        target = {"refId": chr(ord("A") + i), "datasource": DATASOURCE, "editorMode": "code", "expr": expression,
                  "legendFormat": legend, "range": panel.kind != "table", "instant": panel.kind == "table"}
        made.append({**target, "format": "table"} if panel.kind == "table" else target)
    return made


def time_series(panel):
    custom = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 40 if panel.stack else 8, "showPoints": "never",
              "spanNulls": False, "axisPlacement": "auto", "axisLabel": "", "scaleDistribution": {"type": "linear"},
              "stacking": {"group": "A", "mode": "normal" if panel.stack else "none"}}
    options = {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
               "tooltip": {"mode": "multi", "sort": "desc"}}
    return {"color": {"mode": "palette-classic"}, "custom": custom}, options


def stat(panel):
    steps = [{"color": color, "value": value} for value, color in panel.colors]
    defaults = {"color": {"mode": "thresholds"},
                "thresholds": {"mode": "absolute", "steps": [{"color": GREEN, "value": None}, *steps]}}
    options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "value",
               "graphMode": "area", "justifyMode": "auto", "orientation": "auto", "textMode": "auto", "wideLayout": True,
               "showPercentChange": False}
    return defaults, options


def table(_panel):
    return {"custom": {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False}}, {"showHeader": True,
                                                                                             "cellHeight": "sm"}


KINDS = {"timeseries": time_series, "stat": stat, "table": table}


def panel_json(panel, number, x, y):
    defaults, options = KINDS[panel.kind](panel)
    defaults = {"unit": panel.unit, "min": 0, "mappings": [], **defaults}
    if panel.most is not None:
        defaults["max"] = panel.most
    if panel.no_value:
        defaults["noValue"] = panel.no_value
    return {"id": number, "type": panel.kind, "title": panel.title, "description": panel.description,
            "datasource": DATASOURCE, "gridPos": {"h": panel.height, "w": panel.width, "x": x, "y": y},
            "fieldConfig": {"defaults": defaults, "overrides": []}, "options": options, "targets": targets(panel)}


def dashboard_json(uid, title, description, rows):
    panels, y = [], 0
    for row_title, row in rows.items():
        panels.append({"id": len(panels) + 1, "type": "row", "title": row_title, "collapsed": False, "panels": [],
                       "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": y}})
        x, y, height = 0, y + 1, 0
        for panel in row:
            if x + panel.width > COLUMNS:
                x, y, height = 0, y + height, 0
            panels.append(panel_json(panel, len(panels) + 1, x, y))
            x, height = x + panel.width, max(height, panel.height)
        y += height
    links = [{"type": "dashboards", "title": "Baton", "tags": ["baton"], "asDropdown": True, "icon": "external link",
              "includeVars": True, "keepTime": True, "targetBlank": False, "tooltip": "", "url": ""}]
    return {"uid": uid, "title": title, "description": description, "tags": ["baton"], "schemaVersion": SCHEMA_VERSION,
            "version": 1, "editable": True, "graphTooltip": 1, "timezone": "browser", "refresh": "30s",
            "time": {"from": "now-1h", "to": "now"}, "timepicker": {}, "fiscalYearStartMonth": 0, "weekStart": "",
            "annotations": {"list": []}, "links": links, "templating": {"list": VARIABLES}, "panels": panels}
