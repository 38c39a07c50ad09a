"""The metrics port: what it shows agrees with what tgctl and the files say; it survives strangers, and the node a busy port.

promtool, of Debian's package prometheus, checks the text and the alerts where it is there."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import unittest
import urllib.error
import urllib.request

from addresses import free_port_pair
from changes import wait_for_change
from files import read_metrics
from mesh import QUICK, Mesh
from patience import wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
ALERTS = os.path.join(HERE, "..", "..", "deploy", "metrics", "alerts.yml")
STEPS, BATCH = 60, 16


def promtool(*arguments, text=None):
    if shutil.which("promtool") is None:
        raise unittest.SkipTest("promtool is not installed (Debian: prometheus)")
    return subprocess.run(["promtool", *arguments], input=text, capture_output=True, text=True, timeout=60)


def address_of(node, port):
    return f"http://{node.host}:{port}"


def ask(address, path):
    """Status and text."""
    try:
        with urllib.request.urlopen(address + path, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.read().decode()


class Samples(dict):
    """A scrape: 'name{label="value"}' -> number."""

    def __init__(self, text):
        for line in text.splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                self[name] = float(value)

    def sum(self, name):
        return sum(value for key, value in self.items() if key == name or key.startswith(name + "{"))


class MetricsMesh(Mesh):
    """Every node has a metrics port."""

    def __init__(self, count, **options):
        super().__init__(count, **options)
        self.urls = []
        for index, node in enumerate(self.nodes):
            port = free_port_pair(node.host)
            self.configure(index, metrics=f"{node.host}:{port}")
            self.urls.append(address_of(node, port))

    def scrape(self, index=0):
        status, text = ask(self.urls[index], "/metrics")
        if status != 200:
            raise AssertionError(f"/metrics of {self.nodes[index].name}: {status} {text}")
        return Samples(text)

    def wait_answer(self, path, status, body, index=0):
        seen = []

        def answered():
            seen[:] = ask(self.urls[index], path)
            return seen[0] == status and body in seen[1]

        wait_until(lambda: f"{path} of {self.nodes[index].name} says {status} {body}, last {seen}", answered)


class Scraped(unittest.TestCase):
    def check_end(self, mesh, run):
        """Each node's numbers are those of status and metrics.jsonl."""
        status = mesh.run(run)
        completed = 'tgd_run_state{state="COMPLETED"}'
        wait_until("all show the end", lambda: all(mesh.scrape(index)[completed] == 1 for index in range(len(mesh))))
        scrapes = [mesh.scrape(index) for index in range(len(mesh))]
        self.assertEqual(sum(one["tgd_samples_total"] for one in scrapes), STEPS * BATCH)
        for one in scrapes:
            self.assertEqual((one["tgd_steps_total"], one["tgd_run_step"]), (STEPS, status["step"]))
            self.assertAlmostEqual(one["tgd_loss"], status["loss"], places=6)
            self.assertAlmostEqual(one['tgd_accuracy{top="1"}'], status["evaluation"]["accuracy"], places=6)
            self.assertAlmostEqual(one['tgd_accuracy{top="5"}'], status["evaluation"]["accuracy_5"], places=6)
            self.assertAlmostEqual(one["tgd_gradient_nonzero_ratio"], 1 - status["zeros"], delta=0.2)
            for phase, count in {"forward": STEPS, "backward": STEPS, "exchange": STEPS, "evaluate": 2}.items():
                self.assertEqual(one[f'tgd_step_phase_seconds_count{{phase="{phase}"}}'], count, phase)
                self.assertGreater(one[f'tgd_step_phase_seconds_sum{{phase="{phase}"}}'], 0)
            self.assertLess(abs(time.time() - one["tgd_checkpoint_last_success_timestamp_seconds"]), 60)
            self.assertLess(one["tgd_run_started_timestamp_seconds"], one["tgd_checkpoint_last_success_timestamp_seconds"])
            self.assertEqual(one.sum("tgd_run_state"), 1)
            self.assertEqual(one.sum("tgd_peer_up"), len(mesh) - 1)
            self.assertEqual(one['tgd_frames_rejected_total{reason="malformed"}'], 0)
            for name in ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"):
                self.assertGreater(one[name], 0, name)
        # Sender and receiver count the same but for hellos and what came before the first one.
        for a, sender in enumerate(mesh.nodes):
            for b, receiver in enumerate(mesh.nodes):
                if a == b:
                    continue
                sent = scrapes[a][f'tgd_wire_sent_bytes_total{{peer="{receiver.name}"}}']
                received = scrapes[b][f'tgd_wire_received_bytes_total{{peer="{sender.name}"}}']
                self.assertAlmostEqual(received / sent, 1, delta=0.02, msg=f"{sender.name} to {receiver.name}")
        rows = read_metrics(mesh[0].run_file(run, "metrics.jsonl"))
        in_steps = sum(row["sent_bytes"] for row in rows)
        self.assertGreater(scrapes[0].sum("tgd_wire_sent_bytes_total"), in_steps)
        waits = sum(sum(row["wait_seconds"].values()) for row in rows)
        waited = scrapes[0].sum("tgd_peer_wait_seconds_total")
        self.assertTrue(0.99 * waits <= waited <= scrapes[0]["tgd_checkpoint_last_success_timestamp_seconds"] - scrapes[0]["tgd_run_started_timestamp_seconds"], (waits, waited))

    def test_a_run(self):
        with MetricsMesh(3) as mesh, contextlib.ExitStack() as strangers:
            for index in range(3):
                mesh.wait_answer("/readyz", 200, "all peers are up", index)
            before = mesh.scrape()
            self.assertEqual((before["tgd_steps_total"], before["tgd_samples_total"], before.sum("tgd_run_state")), (0, 0, 0))
            self.assertNotIn("tgd_loss", before)

            run = mesh.detach({"steps": STEPS, "global-batch": BATCH, "evaluate-every": STEPS // 2})
            url = re.match(r"http://(.*):(\d+)", mesh.urls[0])
            for _ in range(40):  # clients that connect and send nothing, or half a word
                stranger = strangers.enter_context(socket.socket())
                stranger.setblocking(False)
                stranger.connect_ex((url[1], int(url[2])))
            mesh.wait_for_step(run, 5)
            first = mesh.scrape(1)
            mesh.ctl_ok("wait", run, "--for", "COMPLETED")
            mesh.wait_ended(run)
            last = mesh.scrape(1)
            for name in ("tgd_steps_total", "tgd_samples_total", "tgd_wire_sent_bytes_total", "tgd_wire_received_bytes_total"):
                self.assertGreater(last.sum(name), first.sum(name), name)
            self.assertEqual(ask(mesh.urls[0], "/healthz"), (200, "ok\n"))
            self.check_end(mesh, run)


class Trouble(unittest.TestCase):
    def test_peers_that_go(self):
        with MetricsMesh(3, settings={"peer-timeout": "2s"}) as mesh:
            mesh.wait_answer("/readyz", 200, "")
            mesh[2].kill()
            mesh.wait_answer("/readyz", 503, "not up: node-c\n")
            scrape = mesh.scrape()
            self.assertEqual((scrape['tgd_peer_up{peer="node-b"}'], scrape['tgd_peer_up{peer="node-c"}']), (1, 0))
            mesh[1].signal(signal.SIGSTOP)
            mesh.wait_answer("/readyz", 503, "not up: node-b, node-c\n")
            self.assertEqual(ask(mesh.urls[0], "/healthz")[0], 200, "that is no trouble of its own")
            mesh[1].signal(signal.SIGCONT)
            mesh[2].start()
            mesh.wait_answer("/readyz", 200, "all peers are up")

    def test_a_busy_port(self):
        with socket.socket() as holder:
            mesh = MetricsMesh(2)
            url = re.match(r"http://(.*):(\d+)", mesh.urls[0])
            holder.bind((url[1], int(url[2])))
            holder.listen()
            with mesh:
                log = mesh[0].log_text()
                for words in ("event=metrics-off", f"metrics = {url[1]}:{url[2]}", "Address already in use"):
                    self.assertIn(words, log)
                self.assertIn("Address already in use", mesh.status()["nodes"][0]["problem"])
                run = mesh.start({"steps": 3})
                self.assertEqual(mesh.run(run)["state"], "COMPLETED")
                self.assertEqual(mesh.scrape(1)["tgd_steps_total"], 3)

    def test_a_former_member_shows_how_the_others_ended_the_run(self):
        with MetricsMesh(2) as mesh:
            run = mesh.detach({"steps": 100000})
            mesh.wait_for_step(run, 5)
            mesh[1].signal(signal.SIGKILL)
            mesh[1].wait()
            wait_for_change(mesh[0], run, members=1)
            mesh[1].start()
            mesh.wait_ready()
            self.assertEqual(mesh.scrape(1)['tgd_run_state{state="INTERRUPTED"}'], 1)
            mesh.ctl_ok("stop", run)
            stopped = 'tgd_run_state{state="STOPPED"}'
            wait_until("node-b shows the end", lambda: mesh.scrape(1)[stopped] == 1)
            self.assertEqual(mesh.scrape(1).sum("tgd_run_state"), 1)

    def test_beyond_loopback_is_said(self):
        with Mesh(1) as mesh:
            for value, event in (("0.0.0.0", "event=metrics-open"), (mesh[0].host, "event=metrics ")):
                mesh.configure(0, metrics=f"{value}:{free_port_pair(mesh[0].host)}")
                mesh.restart()
                self.assertIn(event, mesh[0].log_text())
            mesh.configure(0, metrics=f"[::1]:{free_port_pair(mesh[0].host)}")
            mesh.restart()
            log = mesh[0].log_text()
            self.assertTrue(log.count("event=metrics ") == 2 or "libcivetweb is built without IPv6" in log, log)


class Promtool(unittest.TestCase):
    def test_metrics(self):
        with MetricsMesh(2) as mesh:
            fresh = ask(mesh.urls[0], "/metrics")[1]
            mesh.start(QUICK)
            for text in (fresh, ask(mesh.urls[0], "/metrics")[1]):
                checked = promtool("check", "metrics", text=text)
                self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))

    def test_alerts(self):
        checked = promtool("check", "rules", ALERTS)
        self.assertEqual(checked.returncode, 0, checked)
        self.assertIn("7 rules found", checked.stdout)
        fired = promtool("test", "rules", os.path.join(HERE, "alerts_test.yml"))
        self.assertEqual(fired.returncode, 0, fired.stdout + fired.stderr)


if __name__ == "__main__":
    unittest.main()
