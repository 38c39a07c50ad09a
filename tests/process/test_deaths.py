"""One of four members dies, stops, hangs, leaves or is cut off: the others report it by name, in time.

Time runs from the death (as waitpid, or the signal's sender, sees it) until each survivor has recorded the run as
FAILED: `since` in its run.json. Its status must say so too, one gathering of the peers' parts later at most (a status
waits half a second for those that do not answer, and one that was asked before the end still says RUNNING). TGD_DEATHS
is the number of repetitions per phase; the victim changes with each.
"""

import datetime
import os
import signal
import time
import unittest

from asking import Watch
from files import read_safetensors
from mesh import Mesh
from network import Network, NetworkUnavailable
from patience import Elapsed, wait_until

REPETITIONS = int(os.environ.get("TGD_DEATHS", "2"))
PEER_TIMEOUT = 2.0
SLACK = 1.0  # the promise: reported within peer-timeout + 1 s
STATUS = 1.2  # two gatherings of status, and tgctl's own start
JOB = {"steps": 5000, "exchange": "sharded", "digest-every": 4, "evaluate-every": 6, "schedule": "constant"}
MESH = {"peer-timeout": f"{int(PEER_TIMEOUT * 1000)}ms"}


class Death(unittest.TestCase):
    def see_failed(self, mesh, run, victim, since, elapsed, limit, watches, expect, state="FAILED"):
        """Every watched node records and says FAILED (or that state) in time, with `expect` in its reason; how long each took."""
        took = []
        for watch in watches:
            result = watch.result(limit + 30)
            where = f"run {run}, {watch.node.name} (log {watch.node.log}), {victim.name} (log {victim.log})"
            self.assertEqual(result.state, state, where)
            wait_until(f"{where}: its record says {state}", lambda: watch.node.record(run)["state"] == state)
            recorded = datetime.datetime.fromisoformat(watch.node.record(run)["since"].replace("Z", "+00:00"))
            seconds, shown = recorded.timestamp() - since, result.seen_at - since
            took.append(f"{watch.node.name} {seconds:.2f} s (status {shown:.2f} s)")
            for text in expect:
                self.assertIn(text, result.reason, where)
            excused = elapsed.excused()
            self.assertLessEqual(seconds, limit + excused, f"{where}: {result.reason}")
            self.assertLessEqual(shown, limit + excused + STATUS, f"{where}: status is late")
        return f"{', '.join(took)}: {watches[0].reason}"

    def begin(self, mesh, job, node):
        follower = mesh.follow("start", mesh.job_file(JOB | job), node=node)
        run = follower.first_line()
        if not run:
            raise AssertionError(f"no run began at node {node}: {follower.finish()}")
        return follower, run


class Killed(Death):
    STEP = 12  # an evaluation follows it

    def die_in(self, phase):
        for repetition in range(REPETITIONS):
            with self.subTest(phase=phase, repetition=repetition):
                self.die_once(phase, victim=(repetition + 1) % 4)

    def die_once(self, phase, victim):
        with Mesh(4, MESH, per_node={victim: {"fault": f"kill@{phase}:{self.STEP}"}}) as mesh:
            survivors = [i for i in range(4) if i != victim]
            follower, run = self.begin(mesh, {}, survivors[0])
            watches = [Watch(mesh, i, run) for i in survivors]
            status = mesh[victim].wait()
            died, elapsed = time.time(), Elapsed()
            self.assertEqual(status, -signal.SIGKILL, f"{mesh[victim].name}, log {mesh[victim].log}, run {run}")
            report = self.see_failed(
                mesh, run, mesh[victim], died, elapsed, PEER_TIMEOUT + SLACK, watches, [mesh[victim].name, " of step "]
            )
            print(f"killed in {phase} of step {self.STEP}: {report}")
            follower.finish().ends(5, mesh[victim].name)
            self.check_after_restart(mesh, run, victim)

    def check_after_restart(self, mesh, run, victim):
        for index in range(len(mesh)):
            mesh.configure(index, fault=None, peer_timeout="10s")
        mesh.restart()
        mesh.wait_whole(run, without=mesh[victim].name)  # what it had not written died with it
        for index, node in enumerate(mesh.nodes):
            shown = mesh.run(run, node=index)
            where = f"run {run} at {node.name} (log {node.log}): {shown}"
            self.assertEqual(shown["state"], "FAILED", where)
            self.assertIn(mesh[victim].name, shown["reason"], where)
            self.assertTrue(all(member["state"] == "FAILED" for member in shown["members"]), where)
        mesh.ctl("fetch", run, "-o", os.path.join(mesh.folder, "refused")).ends(5, "--partial")

        folder = mesh.fetch(run, "--partial", node=victim)
        tensors, metadata = read_safetensors(os.path.join(folder, "model-raw.safetensors"))
        committed = int(metadata["step"])
        # Members differ by a step at most, and the victim's last frames may have died with it.
        self.assertTrue(self.STEP - 1 <= committed <= self.STEP + 1, f"run {run}: step {committed} was committed")
        # The state after so many steps is that of a run of so many steps.
        again = mesh.start(JOB | {"steps": committed})
        expected, _ = read_safetensors(os.path.join(mesh.fetch(again), "model-raw.safetensors"))
        self.assertEqual(expected, tensors, f"run {run}: the partial state differs from a whole run of {committed} steps")

    def test_forward(self):
        self.die_in("forward")

    def test_scaler_wait(self):
        self.die_in("scaler-wait")

    def test_reduce(self):
        self.die_in("reduce")

    def test_gather(self):
        self.die_in("gather")

    def test_evaluate(self):
        self.die_in("evaluate")


class Silent(Death):
    def test_stopped(self):
        with Mesh(4, MESH) as mesh:
            follower, run = self.begin(mesh, {}, 0)
            mesh.wait_for_step(run, 3)
            watches = [Watch(mesh, i, run) for i in (0, 1, 3)]
            mesh[2].signal(signal.SIGSTOP)
            stopped, elapsed = time.time(), Elapsed()
            report = self.see_failed(mesh, run, mesh[2], stopped, elapsed, PEER_TIMEOUT + SLACK, watches, ["node-c"])
            print(f"stopped: {report}")
            follower.finish().ends(5, mesh[2].name)
            # It wakes up, learns that the run is over and accuses nobody.
            mesh[2].signal(signal.SIGCONT)
            wait_until(f"node-c (log {mesh[2].log}) ends run {run} too", lambda: "event=run-ended" in mesh[2].log_text())
            self.assertEqual(mesh.run(run, node=2)["state"], "FAILED")
            self.assertIn("node-c", mesh[2].record(run)["reason"], f"log {mesh[2].log}")
            # The mesh is whole again.
            mesh.wait_ready()
            mesh.start({"steps": 3})

    def test_hung_in_backward(self):
        timeout = 3
        with Mesh(4, MESH, per_node={3: {"fault": "hang@backward:5"}}) as mesh:
            follower, run = self.begin(mesh, {"step-timeout": f"{timeout}s"}, 1)
            mesh.wait_for_step(run, 4, node=1)  # the newest that all have
            hung, elapsed = time.time(), Elapsed()  # at the latest now, or it is about to
            watches = [Watch(mesh, i, run) for i in range(4)]
            shown = wait_until("status shows where node-d is, and how long it may be", lambda: self.stuck(mesh, run), timeout)
            self.assertEqual(shown, {"name": "backward", "seconds": shown["seconds"], "limit_seconds": timeout})
            self.assertRegex(mesh.ctl_ok("status", run, node=0).out, rf"node-d +RUNNING .* backward [1-{timeout}] s of {timeout} s")
            report = self.see_failed(
                mesh, run, mesh[3], hung, elapsed, timeout + SLACK, watches, ["node-d is stuck in backward of step 5"]
            )
            print(f"hung in backward: {report}")
            follower.finish().ends(5, mesh[3].name)
            self.assertEqual(mesh[3].end(), 0, f"a hung computation does not keep node-d from ending; log {mesh[3].log}")

    def stuck(self, mesh, run):
        """What status at another node says of node-d's phase, once it lasts."""
        phase = next(member["phase"] for member in mesh.run(run, node=0)["members"] if member["node"] == "node-d")
        return phase if phase is not None and (phase["seconds"] or 0) >= 1 else None

    def test_shut_down(self):
        with Mesh(4, MESH) as mesh:
            follower, run = self.begin(mesh, {}, 0)
            mesh.wait_for_step(run, 3)
            watches = [Watch(mesh, i, run) for i in (0, 2, 3)]
            mesh[1].signal(signal.SIGTERM)
            told, elapsed = time.time(), Elapsed()
            report = self.see_failed(mesh, run, mesh[1], told, elapsed, 1.0, watches, ["node-b was shut down"], "INTERRUPTED")
            print(f"shut down: {report}")
            follower.finish().ends(10, mesh[1].name, f"tgctl resume {run}")
            self.assertEqual(mesh[1].wait(), 0, f"log {mesh[1].log}")
            self.assertEqual(mesh[1].record(run)["state"], "INTERRUPTED")
            self.assertTrue(os.path.exists(mesh[1].run_file(run, "model-raw.safetensors")), "its state was not written")


class CutOff(Death):
    """Packets of one node of four are dropped. It has to end in time as well, whatever it takes for the cause."""

    def setUp(self):
        try:
            self.network = Network(4, cut=True).__enter__()
        except NetworkUnavailable as reason:
            self.skipTest(str(reason))
        self.addCleanup(self.network.__exit__)

    def cut_off(self, what, cut):
        with Mesh(4, MESH | {"insecure": "true"}, hosts=self.network.addresses, prefixes=self.network.prefixes) as mesh:
            follower, run = self.begin(mesh, {}, 0)
            mesh.wait_for_step(run, 3)
            watches = [Watch(mesh, i, run) for i in (0, 1, 3)]
            alone = Watch(mesh, 2, run)
            cut(2)
            since, elapsed = time.time(), Elapsed()
            report = self.see_failed(mesh, run, mesh[2], since, elapsed, PEER_TIMEOUT + SLACK, watches, ["node-c"])
            print(f"{what}: {report}")
            follower.finish().ends(5, mesh[2].name)
            report = self.see_failed(mesh, run, mesh[2], since, elapsed, PEER_TIMEOUT + SLACK, [alone], [])
            print(f"{what}, the one cut off: {report}")

    def test_one_direction(self):
        """What is sent to it still arrives: it hears the others, but nobody hears it."""
        self.cut_off("cut off in one direction", self.network.cut)

    def test_both_directions(self):
        self.cut_off("cut off", self.network.isolate)


if __name__ == "__main__":
    unittest.main()
