"""The Grafana board deploy/metrics/grafana/tgd.json: a real Prometheus, of Debian's package of that name, scrapes a mesh
that trains and is asked every query of the board. Grafana itself is not run."""

import itertools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.parse

from addresses import free_port_pair
from node import _die_with_us
from patience import PATIENCE, wait_until
from test_metrics import MetricsMesh, address_of, ask

HERE = os.path.dirname(os.path.abspath(__file__))
BOARD = os.path.join(HERE, "..", "..", "deploy", "metrics", "grafana", "tgd.json")
METRICS_SOURCE = os.path.join(HERE, "..", "..", "daemon", "metrics", "text.cpp")
BUILT_IN = {"bargauge", "row", "stat", "state-timeline", "table", "timeseries"}  # the panels that need no plugin
WINDOW_SECONDS = 10
# These have no series here: the nodes of the tests train on the processor.
OF_A_GPU = {"tgd_device_up", "tgd_device_memory_bytes", "tgd_device_memory_free_bytes"}
WORDS = {"and", "or", "unless"}  # PromQL's, outside of parentheses that a word opens


def read_board():
    with open(BOARD) as file:
        return json.load(file)


def metric_names(expression):
    """All names in it that are not words, functions, labels or their values."""
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\b(by|on|ignoring|without|group_left|group_right)\s*\([^)]*\)", " ", expression)
    return {name for name in re.findall(r"(?<![\w:$])[a-zA-Z_:][\w:]*\b(?!\s*\()", bare) if name not in WORDS}


class Prometheus:
    """One prometheus on loopback that scrapes the mesh twice a second, in a scratch folder. Leaving the block ends it."""

    def __init__(self, mesh):
        self.targets = [url.split("//")[1] for url in mesh.urls]
        port = free_port_pair(mesh[0].host)
        self.listen, self.url = f"{mesh[0].host}:{port}", address_of(mesh[0], port)

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="tgd-test-")
        config, self.log = (os.path.join(self.folder, name) for name in ("prometheus.yml", "prometheus.log"))
        scrape = {"job_name": "tgd", "scrape_interval": "500ms", "scrape_timeout": "500ms", "static_configs": [{"targets": self.targets}]}
        with open(config, "w") as file:
            json.dump({"scrape_configs": [scrape]}, file)  # JSON is YAML
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.folder}/data", f"--web.listen-address={self.listen}"],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_die_with_us)  # fmt: skip
        try:
            wait_until(lambda: f"Prometheus is ready; its log: {self.tail()}", self.ready)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def tail(self):
        with open(self.log) as log:
            return "".join(log.readlines()[-10:])

    def ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"Prometheus ended with {self.process.returncode}: {self.tail()}")
        try:
            return ask(self.url, "/-/ready")[0] == 200
        except OSError:
            return False

    def ask(self, path, **values):
        """The data of its answer."""
        status, text = ask(self.url, f"/api/v1/{path}?" + urllib.parse.urlencode(values))
        answer = json.loads(text)
        if status != 200 or answer["status"] != "success":
            raise AssertionError(f"{path} {values}: {text}")
        return answer["data"]

    def series(self, expression, instant):
        """Labels of each series that has a number, asked as Grafana asks."""
        now = time.time()
        if instant:
            result = self.ask("query", query=expression, time=now)["result"]
        else:
            result = self.ask("query_range", query=expression, start=now - WINDOW_SECONDS / 2, end=now, step=1)["result"]
        return [one["metric"] for one in result if any(math.isfinite(float(value)) for _, value in one.get("values", [one.get("value")]))]


class Board(unittest.TestCase):
    def check_file(self, board):
        """Every panel has a place, a name, words and nothing that has to be installed."""
        panels = board["panels"]
        self.assertEqual([one["title"] for one in panels if one["type"] == "row"], ["Run", "Time of a step", "Network", "Nodes"])
        self.assertEqual(len({one["id"] for one in panels}), len(panels))
        self.assertLessEqual({one["type"] for one in panels}, BUILT_IN)
        taken = set()
        for panel in panels:
            place = panel["gridPos"]
            cells = set(itertools.product(range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])))
            self.assertFalse(cells & taken, panel["title"])
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            taken |= cells
            if panel["type"] != "row":
                self.assertTrue(panel["description"] and panel["targets"], panel["title"])
                self.assertEqual({one["datasource"]["uid"] for one in (panel, *panel["targets"])}, {"${datasource}"}, panel["title"])

    def check_query(self, prometheus, shown, target, values):
        """Whether it has to have a series; it then has one."""
        expression = target["expr"]
        for name, value in values.items():
            expression = expression.replace(f"${name}", value)
        self.assertNotIn("$", expression)
        names = metric_names(expression)
        self.assertTrue(names)
        if names & OF_A_GPU:
            with open(METRICS_SOURCE) as source:
                known = set(re.findall(r'"((?:tgd|process)_\w+)"', source.read()))
            self.assertEqual(names - shown - known, set(), "no node shows them")
            prometheus.series(expression, target["instant"])
            return False
        self.assertEqual(names - shown, set(), "no node shows them")
        found = wait_until(f"a series of {expression}", lambda: prometheus.series(expression, target["instant"]))
        if target.get("format") == "table":
            return True
        legend = target["legendFormat"]
        for labels in found:
            self.assertLessEqual(set(re.findall(r"\{\{(\w+)\}\}", legend)), set(labels), "labels of the legend")
        called = [re.sub(r"\{\{(\w+)\}\}", lambda match: labels[match[1]], legend) for labels in found]
        self.assertEqual(len(set(called)), len(called), f"two series are called the same: {called}")
        return True

    def check_variables(self, prometheus, board, nodes):
        """What the board offers to choose from."""
        offered = {}
        for one in board["templating"]["list"]:
            if one["type"] == "query":
                match = re.fullmatch(r"label_values\((.*), (\w+)\)", one["query"]["query"])
                offered[one["name"]] = prometheus.ask(f"label/{match[2]}/values", **{"match[]": match[1].replace("$job", "tgd")})
        self.assertEqual(offered, {"job": ["tgd"], "node": nodes})

    def test_every_query_has_an_answer(self):
        if shutil.which("prometheus") is None:
            self.skipTest("prometheus is not installed (Debian: prometheus)")
        board = read_board()
        self.check_file(board)
        with MetricsMesh(2) as mesh:
            mesh.start({"steps": 10})  # its end is saved: one of the panels says when
            run = mesh.detach({"steps": 100000, "evaluate-every": 20})
            mesh.wait_for_step(run, 40)
            shown = set()
            for url in mesh.urls:
                shown |= set(re.findall(r"^([a-zA-Z_:][\w:]*)", ask(url, "/metrics")[1], re.M))
            nodes = [node.name for node in mesh.nodes]
            with Prometheus(mesh) as prometheus:
                wait_until("Prometheus has asked every node", lambda: len(prometheus.series("tgd_build_info", True)) == len(nodes))
                self.check_variables(prometheus, board, nodes)
                values = {"__rate_interval": f"{WINDOW_SECONDS}s", "__interval": "1s", "job": "tgd"}
                values["parameters"] = next(one["query"] for one in board["templating"]["list"] if one["name"] == "parameters")
                answered = []
                for panel in board["panels"]:
                    for target in panel.get("targets", []):
                        with self.subTest(panel=panel["title"], query=target["refId"]):
                            node = nodes[0] if panel.get("repeat") else f"({'|'.join(nodes)})"
                            answered.append(self.check_query(prometheus, shown, target, values | {"node": node}))
                print(f"{len(answered)} queries, {sum(answered)} with series", end=" ... ", flush=True)
            mesh.ctl_ok("stop", run)


if __name__ == "__main__":
    unittest.main()
