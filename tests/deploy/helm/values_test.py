#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chart refuses wrong values, and names each."""

import unittest

import helm

# Values, and the parts of Helm's error.
WRONG = [
    # names
    (["prefil.replicas=2"], ["'prefil' not allowed"]),
    (["prefill.replica=2"], ["/prefill", "'replica' not allowed"]),
    (["router.kvMemory=\"1Gi\""], ["/router", "'kvMemory' not allowed"]),
    (["model.init.img=\"x\""], ["/model/init", "'img' not allowed"]),
    (["prefill.autoscaling.max=3"], ["/prefill/autoscaling", "'max' not allowed"]),
    (['prefill.extraEnv=[{"nme":"A"}]'], ["/prefill/extraEnv/0", "'nme'"]),
    # types and choices
    (["prefill.replicas=\"two\""], ["/prefill/replicas", "got string, want integer"]),
    (["decode.replicas=-1"], ["/decode/replicas", "minimum: got -1"]),
    (["router.replicas=0"], ["/router/replicas", "minimum: got 0, want 1"]),
    (["prefill.kvMemory=\"1GB\""], ["/prefill/kvMemory", "'1GB' does not match"]),
    (["prefill.kvTierFileSize=\"1GB\""], ["/prefill/kvTierFileSize"]),
    (["model.source=\"s3\""], ["/model/source", "must be one of", "'hostPath'"]),
    (["model.kvDtype=\"fp4\""], ["/model/kvDtype", "must be one of"]),
    (["model.quantize=false"], ["/model/quantize", "must be one of"]),
    (["model.path=\"/abs\""], ["/model/path", "'/abs' does not match"]),
    (["logLevel=\"trace\""], ["/logLevel", "'warning'"]),
    (["ipFamily=\"dual\""], ["/ipFamily", "'IPv6'"]),
    (["image.digest=\"sha256:1\""], ["/image/digest", "does not match"]),
    (["router.service.type=\"External\""], ["/router/service/type", "'LoadBalancer'"]),
    (["decode.autoscaling.mode=\"vpa\""], ["/decode/autoscaling/mode", "'keda'"]),
    (['decode.options={"prefix-cache":false}'], ["/decode/options/prefix-cache", "got boolean"]),
    (['decode.options={"maxQueue":3}'], ["invalid propertyName 'maxQueue'"]),
    (["prefill.maxUnavailable=\"some\""], ["/prefill/maxUnavailable"]),
    # values that do not go together
    (["prefill.replicas=0"], ["prefill.replicas is 0: without prefill workers no request is served", "both.replicas"]),
    (["decode.replicas=0"], ["decode.replicas is 0: without decode workers no request is served"]),
    (["decode.replicas=0", "both.replicas=0"], ["decode.replicas is 0"]),
    (["prefill.kvMemory=\"300Mi\""],
     ["prefill.resources.limits.memory is 512Mi, less than prefill.kvMemory (300Mi) and model.memory (256Mi) together"]),
    (["decode.kvTierFileSize=\"1Gi\""], ["decode.kvTierFileSize is set: decode workers compute no prompts"]),
    (["model.memory=\"400Mi\""], ["limits.memory is 512Mi, less than"]),
    (["prefill.resources={\"limits\":{\"memory\":\"1.5Q\"}}"], ["1.5Q: expected an amount of memory"]),
    (["model.source=\"claim\""], ["model.claim.name is empty: model.source is claim"]),
    (["model.source=\"hostPath\""], ["model.hostPath.path is empty"]),
    (["model.source=\"image\""], ["model.image.reference is empty"]),
    (["model.source=\"init\""], ["model.init.image is empty"]),
    (["model.path=\"llama\""], ["model.path is llama, but model.source is bundled"]),
    (['router.options={"listen":"0.0.0.0:1"}'], ["router.options or extraArgs has listen, which the chart sets"]),
    (['prefill.options={"kv-tier-file":"/x"}'], ["kv-tier-file", "from the value prefill.kvTierFileSize"]),
    (['prefill.options={"kv-memory":"1GiB"}'], ["prefill.options", "kv-memory", "from the value prefill.kvMemory"]),
    (['decode.extraArgs=["--drain-timeout=1s"]'], ["decode", "drain-timeout", "from the value decode.drainSeconds"]),
    (['router.options={"drain-delay":"1s"}'], ["router", "drain-delay", "from the value router.drainDelaySeconds"]),
    (["prefill.autoscaling.minReplicas=5"], ["prefill.autoscaling.minReplicas is 5 and maxReplicas 4"]),
    (["monitoring.podMonitor=true", "monitoring.serviceMonitor=true"], ["would scrape each pod twice"]),
    (["grpcRoute.enabled=true"], ["grpcRoute.parentRefs is empty"]),
]

RIGHT = [
    ["prefill.replicas=0", "decode.replicas=0", "both.replicas=1"],
    ["prefill.replicas=0", "both.replicas=1"],
    ["prefill.kvMemory=\"256Mi\""],  # with model.memory just the limit
    ["prefill.kvMemory=\"40Gi\"", "prefill.device=\"cuda\""],  # KV pages in the device's memory
    ["prefill.kvMemory=\"40Gi\"", "prefill.resources.limits=null"],
    ["prefill.resources.limits.memory=\"536870912\""],
]


class ValuesTest(unittest.TestCase):
    def test_wrong_values_are_refused_by_name(self):
        for sets, expected in WRONG:
            with self.subTest(sets), self.assertRaises(helm.HelmError) as error:
                helm.template(sets=sets)
            for part in expected:
                with self.subTest(sets):
                    self.assertIn(part, str(error.exception))

    def test_right_values_are_taken(self):
        for sets in RIGHT:
            with self.subTest(sets):
                self.assertNotEqual(helm.template(sets=sets), [])

    def test_old_clusters_are_refused(self):
        for version, sets, expected in (("1.28", [], ">=1.29.0-0"),
                                        ("1.30", ["model.source=\"image\"", "model.image.reference=\"x\""], "need Kubernetes 1.31")):
            with self.subTest(version), self.assertRaises(helm.HelmError) as error:
                helm.template(kube_version=version, sets=sets)
            self.assertIn(expected, str(error.exception))


if __name__ == "__main__":
    unittest.main()
