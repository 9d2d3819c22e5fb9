#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A router, a prefill and a decode worker answer, and send their trace to a collector that reads OTLP by
OpenTelemetry's own code.

BATON_BIN names the folder with the built programs."""

import base64
import http.server
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "monitoring"))

import otlp_reader  # noqa: E402
from baton_processes import MODEL, Processes, free_port  # noqa: E402

try:
    otlp_reader.install()
except otlp_reader.get_tool.NoNpm as missing_npm:
    print(missing_npm)
    sys.exit(77)

BIN = pathlib.Path(os.environ["BATON_BIN"])


class Collector(http.server.BaseHTTPRequestHandler):
    bodies = []

    def do_POST(self):  # noqa: N802
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.bodies.append((self.path, self.headers["Content-Type"], body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


class OtlpTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.addClassCleanup(cls.server.shutdown)
        cls.processes = Processes(BIN, folder.name)
        cls.addClassCleanup(cls.processes.stop)
        workers = [cls.processes.start_baton("p0", "prefill", f"--model={MODEL}", "--worker-id=p0", "--token-budget=16"),
                   cls.processes.start_baton("d0", "decode", f"--model={MODEL}", "--worker-id=d0",
                                             f"--handoff-listen=127.0.0.1:{free_port()}")]
        endpoint = f"http://127.0.0.1:{cls.server.server_port}/v1/traces"
        cls.router = cls.processes.start_baton("router", "router", f"--workers={','.join(workers)}",
                                               f"--trace-endpoint={endpoint}", "--trace-sample=1")
        cls.baton("status", "--wait=60s")
        cls.baton("generate", "--chat=" + "What does Baton do? " * 8, "--max-tokens=12", "--summary")
        deadline = time.monotonic() + 60
        while not Collector.bodies and time.monotonic() < deadline:
            time.sleep(0.05)
        cls.path, cls.content_type, body = Collector.bodies[0]
        cls.spans = []
        for resource in otlp_reader.read(body)["resourceSpans"]:
            attributes = {each["key"]: each["value"]["stringValue"] for each in resource["resource"]["attributes"]}
            for scope in resource["scopeSpans"]:
                cls.spans += [{**span, "resource": attributes} for span in scope["spans"]]

    @classmethod
    def baton(cls, *arguments):
        return subprocess.run([BIN / "baton", *arguments, f"--target={cls.router}"], check=True, capture_output=True,
                              text=True, timeout=120)

    def span(self, name):
        return next(span for span in self.spans if span["name"] == name)

    def attributes(self, name):
        return {each["key"]: next(iter(each["value"].values())) for each in self.span(name)["attributes"]}

    def test_the_request_is_protobuf_to_the_path_of_the_endpoint(self):
        self.assertEqual((self.path, self.content_type), ("/v1/traces", "application/x-protobuf"))

    def test_each_stage_is_a_span_of_its_process(self):
        found = {(span["name"], span["resource"].get("service.instance.id", "router")) for span in self.spans}
        self.assertEqual(found, {("request", "router"), ("tokenize", "router"), ("place", "router"), ("attempt", "router"),
                                 ("queue", "p0"), ("prefill", "p0"), ("chunk", "p0"), ("transfer", "p0"), ("decode", "d0")})
        self.assertEqual(self.span("request")["resource"]["service.name"], "baton-router")
        self.assertEqual(self.span("decode")["resource"]["service.name"], "baton-worker")

    def test_a_long_prompt_has_a_span_for_each_chunk(self):
        chunks = [span for span in self.spans if span["name"] == "chunk"]
        self.assertGreater(len(chunks), 1)
        starts = [int(span["startTimeUnixNano"]) for span in chunks]
        self.assertEqual(starts, sorted(starts))

    def test_spans_form_one_tree(self):
        self.assertEqual(len({span["traceId"] for span in self.spans}), 1)
        self.assertEqual(len(base64.b64decode(self.spans[0]["traceId"])), 16)
        by_id = {span["spanId"]: span for span in self.spans}
        self.assertEqual(len(by_id), len(self.spans))
        for span in self.spans:
            self.assertLessEqual(int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"]))
            if span["name"] == "request":
                self.assertNotIn("parentSpanId", span)
                self.assertEqual(span["kind"], "SPAN_KIND_SERVER")
            else:
                self.assertIn(span["parentSpanId"], by_id)

    def test_the_request_has_the_conventions_attributes(self):
        attributes = self.attributes("request")
        self.assertEqual(attributes["gen_ai.operation.name"], "chat")
        self.assertEqual(attributes["gen_ai.request.model"], "demo-chat")
        self.assertEqual(attributes["gen_ai.request.max_tokens"], "12")
        self.assertEqual(attributes["gen_ai.usage.output_tokens"], "12")
        self.assertEqual(attributes["gen_ai.response.finish_reasons"], {"values": [{"stringValue": "length"}]})
        self.assertGreater(float(attributes["baton.ttft_seconds"]), 0)
        self.assertRegex(self.attributes("place")["baton.placement.estimates"], r"^p0\+d0 \d+\.\d+$")
        self.assertGreater(int(self.attributes("transfer")["baton.kv_bytes"]), 0)


if __name__ == "__main__":
    unittest.main()
