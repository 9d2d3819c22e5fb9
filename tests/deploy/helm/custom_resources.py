# SPDX-License-Identifier: Apache-2.0
"""The fields of custom resources that the chart uses, as JSON schemas."""

TEXT = {"type": "string"}
TEXTS = {"type": "object", "additionalProperties": TEXT}
METADATA = {"type": "object"}
WHOLE = {"type": "integer"}


def fields(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def resource(**spec):
    required = list(spec)
    return fields(["apiVersion", "kind", "metadata", "spec"], apiVersion=TEXT, kind=TEXT, metadata=METADATA,
                  spec=fields([name for name in required if name != "hostnames"], **spec))


def list_of(items):
    return {"type": "array", "items": items, "minItems": 1}


SELECTOR = fields(["matchLabels"], matchLabels=TEXTS)
DURATION = {"type": "string", "pattern": "^[0-9]+(ms|s|m)$"}
SCRAPE = fields(["port"], port=TEXT, path=TEXT, interval=DURATION)
RULE = {
    **fields(["expr"], record=TEXT, alert=TEXT, expr={"type": ["string", "integer"]}, labels=TEXTS, annotations=TEXTS,
             **{"for": TEXT, "keep_firing_for": TEXT}),
    "oneOf": [{"required": ["record"]}, {"required": ["alert"]}],
}
PROMETHEUS_TRIGGER = fields(
    ["type", "metadata"], type={"const": "prometheus"}, metricType={"enum": ["AverageValue", "Value"]},
    metadata=fields(["serverAddress", "query", "threshold"], serverAddress=TEXT, query=TEXT, threshold=TEXT))

SCHEMAS = {
    ("monitoring.coreos.com/v1", "PodMonitor"): resource(selector=SELECTOR, podMetricsEndpoints=list_of(SCRAPE)),
    ("monitoring.coreos.com/v1", "ServiceMonitor"): resource(selector=SELECTOR, endpoints=list_of(SCRAPE)),
    ("monitoring.coreos.com/v1", "PrometheusRule"): resource(
        groups=list_of(fields(["name", "rules"], name=TEXT, interval=TEXT, rules=list_of(RULE)))),
    ("keda.sh/v1alpha1", "ScaledObject"): resource(
        scaleTargetRef=fields(["name"], name=TEXT), minReplicaCount=WHOLE, maxReplicaCount=WHOLE,
        advanced=fields(horizontalPodAutoscalerConfig=fields(behavior=fields(
            scaleDown=fields(stabilizationWindowSeconds=WHOLE)))),
        triggers=list_of(PROMETHEUS_TRIGGER)),
    ("gateway.networking.k8s.io/v1", "GRPCRoute"): resource(
        parentRefs=list_of({"type": "object", "required": ["name"]}), hostnames=list_of(TEXT),
        rules=list_of(fields(["backendRefs"], backendRefs=list_of(fields(["name", "port"], name=TEXT, port=WHOLE))))),
}
