# SPDX-License-Identifier: Apache-2.0
"""An API server that knows one Secret, or none: enough for Helm's function `lookup`."""

import contextlib
import http.server
import json
import threading

from kubernetes_fields import CLASSES

PLURALS = {"Ingress": "ingresses", "NetworkPolicy": "networkpolicies"}


def answers(secret):
    """Path -> answer, for the namespace `serving`."""
    versions = {}
    for version, kind in CLASSES:
        names = PLURALS.get(kind, kind.lower() + "s")
        versions.setdefault(version, []).append(
            {"name": names, "singularName": "", "namespaced": True, "kind": kind, "verbs": ["get"]})
    found = {f"/api{'' if version == 'v1' else 's'}/{version}":
             {"kind": "APIResourceList", "groupVersion": version, "resources": resources}
             for version, resources in versions.items()}
    groups = [{"name": version.partition("/")[0], "versions": [{"groupVersion": version, "version": version.partition("/")[2]}]}
              for version in versions if "/" in version]
    found["/version"] = {"major": "1", "minor": "35", "gitVersion": "v1.35.0"}
    found["/api"] = {"kind": "APIVersions", "versions": ["v1"]}
    found["/apis"] = {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    if secret is not None:
        found[f"/api/v1/namespaces/serving/secrets/{secret['metadata']['name']}"] = secret
    return found


@contextlib.contextmanager
def fake_cluster(secret, folder):
    """Yields the path of a kubeconfig."""
    known = answers(secret)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # noqa: N802: the name that http.server calls
            answer = known.get(self.path.partition("?")[0])
            code = 200 if answer else 404
            body = json.dumps(answer or {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound",
                                         "code": 404}).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        config = folder / "kubeconfig"
        config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {}}],
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}]}))
        yield config
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
