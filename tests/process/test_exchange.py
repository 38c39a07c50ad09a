"""What the exchange promises while it runs: a member that stands still costs the others time, not memory; it is named;
so is one that is slow, as long as it is; a timeline shows which member did what. TGD_PAUSE is how many seconds the
member stands still."""

import json
import os
import signal
import time
import unittest

from mesh import Mesh
from patience import wait_until

PAUSE = float(os.environ.get("TGD_PAUSE", "6"))
SLICE_SECONDS = 0.1  # a member that runs in one of four is at a quarter of its speed


def peak_bytes(node):
    with open(f"/proc/{node.process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024


def held_up_by(mesh, run):
    """The members that status marks: the others wait for them more than half of their time."""
    return [member["node"] for member in mesh.run(run)["members"] if member["holds_up"]]


class Paused(unittest.TestCase):
    def test_in_the_sharded_exchange(self):
        """GoogLeNet's parameters on a slow link: a step's frames would be many times what the windows let out. (Both: ExchangeFlow.)"""
        job = {
            "exchange": "sharded", "model": "googlenet-slim", "compute": "replay", "ema": 0, "steps": 100000, "digest-every": 100000,
            "data-train": None, "data-test": None, "link-mbps": 100, "evaluate-every": 0,
        }  # fmt: skip
        with Mesh(3, {"peer-timeout": "60s"}) as mesh:
            run = mesh.detach(job)
            budget = self.printed_budget(mesh, run)
            others, victim = mesh.nodes[:2], mesh[2]
            wait_until("the run steps", lambda: mesh.run(run)["step"] >= 3)

            def stands_still():
                """Whether it is the one marked after a pause: on a busy machine another one may have been slow too."""
                victim.signal(signal.SIGSTOP)
                stopped = time.monotonic()
                while time.monotonic() - stopped < PAUSE:
                    self.assertEqual(mesh.run(run)["state"], "RUNNING")
                    time.sleep(0.2)
                before = mesh.run(run)["step"]
                victim.signal(signal.SIGCONT)
                wait_until("the run goes on", lambda: mesh.run(run)["step"] >= before + 3)
                return held_up_by(mesh, run) == [victim.name]

            wait_until("node-c is marked", stands_still)
            for node in others:
                peak = peak_bytes(node)
                print(f"{node.name}: peak {peak / 1e6:.0f} MB, {100 * peak / budget:.0f} % of the budget")
                self.assertLess(peak, budget, node.name)
            mesh.ctl_ok("stop", run)
            wait_until("the run is stopped", lambda: mesh.run(run)["state"] == "STOPPED")

    def printed_budget(self, mesh, run):
        wait_until("the run has begun", lambda: "event=run-started" in mesh[0].log_text())
        line = next(line for line in mesh[0].log_text().splitlines() if "event=run-started" in line and run in line)
        return int(line.split("memory-bytes=", 1)[1].split()[0])


class Slow(unittest.TestCase):
    def test_of_two_the_slow_one_is_marked_while_it_is_slow(self):
        job = {"model": "lenet", "data": "synthetic", "global-batch": 128, "steps": 100000, "evaluate-every": 0}
        with Mesh(2, {"peer-timeout": "60s", "threads": 1}) as mesh:
            run = mesh.detach(job)
            wait_until("the run steps", lambda: mesh.run(run)["step"] >= 3)
            slow = mesh[1]
            deadline = time.monotonic() + 60
            marked = []  # one look at a time: a step at full speed may already take the mark away
            while marked != [slow.name] and time.monotonic() < deadline:
                for number, slices in ((signal.SIGSTOP, 3), (signal.SIGCONT, 1)):
                    slow.signal(number)
                    time.sleep(slices * SLICE_SECONDS)
                marked = held_up_by(mesh, run)
            self.assertEqual(marked, [slow.name])
            wait_until("it is over", lambda: held_up_by(mesh, run) == [])
            mesh.ctl_ok("stop", run)
            wait_until("the run is stopped", lambda: mesh.run(run)["state"] == "STOPPED")


class Traced(unittest.TestCase):
    def test_every_member_leaves_a_timeline(self):
        with Mesh(3) as mesh:
            run = mesh.start({"steps": 6, "trace": "true"})
            folder = mesh.fetch(run)
            for node in mesh.nodes:
                with open(os.path.join(folder, f"trace-{node.name}.json")) as file:
                    trace = json.load(file)
                self.assertEqual(trace["otherData"], {"member": node.name, "spans_left_out": 0})
                spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
                for name in ("forward", "backward", "measure", "contribute", "reduce"):
                    steps = {span["args"]["step"] for span in spans if span["name"] == name}
                    self.assertEqual(steps, set(range(6)), f"{node.name}: {name}")
                # Every bucket is ready once, while backward runs.
                backward = {s["args"]["step"]: s for s in spans if s["name"] == "backward"}
                ready = [s for s in spans if s["name"] == "ready"]
                buckets = {s["args"]["bucket"] for s in spans if s["name"] == "measure"}
                self.assertEqual(sorted((s["args"]["step"], s["args"]["bucket"]) for s in ready), sorted((step, b) for step in range(6) for b in buckets))
                for span in ready:
                    around = backward[span["args"]["step"]]
                    self.assertTrue(around["ts"] <= span["ts"] <= around["ts"] + around["dur"] + 2, f"{span} {around}")
                # One thread does one thing at a time.
                for track in (1, 2):
                    own = sorted((s for s in spans if s["tid"] == track and s["name"] not in ("wait", "ready")), key=lambda s: s["ts"])
                    for one, next_one in zip(own, own[1:]):
                        self.assertLessEqual(one["ts"] + one["dur"], next_one["ts"] + 2, f"{one} {next_one}")

    def test_helpers_of_the_exchange_have_tracks_of_their_own(self):
        """They leave the bits as they are: the same run on one thread, and on several."""
        job = {
            "model": "googlenet-slim", "compute": "replay", "steps": 5, "trace": "true", "exchange": "sharded", "link-mbps": 1000,
            "data-train": None, "data-test": None, "evaluate-every": 0,
        }  # fmt: skip
        with Mesh(3) as mesh:
            digests = set()
            for threads in sorted({1, min(3, len(os.sched_getaffinity(0)))}):
                run = mesh.start(job | {"threads": threads})
                digests.add(mesh.run(run)["digest"])
                folder = mesh.fetch(run)
                for node in mesh.nodes:
                    with open(os.path.join(folder, f"trace-{node.name}.json")) as file:
                        events = json.load(file)["traceEvents"]
                    tracks = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
                    helpers = {f"exchange helper {i}" for i in range(1, threads + 1)} if threads > 1 else set()
                    self.assertEqual(tracks, {"exchange", "compute"} | helpers, node.name)
            self.assertEqual(len(digests), 1, digests)

    def test_a_timeline_that_is_gone_costs_no_other(self):
        with Mesh(2) as mesh:
            run = mesh.start({"steps": 2, "trace": "true"})
            mesh.wait_ended(run)
            os.remove(mesh[0].run_file(run, "trace.json"))
            folder = os.path.join(mesh.folder, "fetched")
            self.assertIn("no timeline of node-a", mesh.ctl_ok("fetch", run, "-o", folder).err)
            self.assertEqual([name for name in os.listdir(folder) if name.startswith("trace")], ["trace-node-b.json"])

    def test_a_run_without_a_timeline_is_fetched_as_before(self):
        with Mesh(1) as mesh:
            run = mesh.start({"steps": 2})
            folder = mesh.fetch(run)
            self.assertEqual([name for name in os.listdir(folder) if name.startswith("trace")], [])


if __name__ == "__main__":
    unittest.main()
