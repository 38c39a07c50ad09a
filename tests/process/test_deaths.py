"""One of four members dies, stops, hangs, leaves or is cut off: the others go on without it, in time, and name it.

Time runs from the death (as waitpid, or the signal's sender, sees it) until each survivor's log says that it goes on in
another view. TGD_DEATHS is the number of repetitions per phase; the victim changes with each, and with the phase.
"""

import os
import signal
import time
import unittest

from changes import changes, check_end, wait_for_change, wait_recorded
from files import read_safetensors
from mesh import QUICK, Mesh
from network import Network, NetworkUnavailable
from patience import Elapsed, wait_until

REPETITIONS = int(os.environ.get("TGD_DEATHS", "1"))
PHASES = ("forward", "scaler-wait", "reduce", "gather", "evaluate")
PEER_TIMEOUT = 2.0
SLACK = 1.0  # the promise: gone on within peer-timeout + 1 s
JOB = {"steps": 100000, "exchange": "sharded", "digest-every": 4, "evaluate-every": 6, "schedule": "constant"}
MESH = {"peer-timeout": f"{int(PEER_TIMEOUT * 1000)}ms"}
MODELS = ("model.safetensors", "model-raw.safetensors")


class Death(unittest.TestCase):
    def see_gone_on(self, mesh, run, victim, since, elapsed, limit, survivors, expect):
        """Every survivor goes on without the victim in time, with `expect` as the reason, and gets further; how long each took."""
        took = []
        for node in survivors:
            change = wait_for_change(node, run, members=len(survivors), patience=limit + 30)
            where = f"run {run}, {node.name} (log {node.log}), {victim.name} (log {victim.log}): {change.why}"
            took.append(f"{node.name} {change.at - since:.2f} s")
            for text in expect:
                self.assertIn(text, change.why, where)
            self.assertLessEqual(change.at - since, limit + elapsed.excused(), where)
            self.assertEqual(len(changes(node, run)), 1, f"one change: {where}")
        mesh.wait_for_step(run, change.start + 10, node=survivors[0])
        for node in survivors:
            shown = mesh.run(run, node=node)
            self.assertEqual(shown["state"], "RUNNING", f"{node.name} (log {node.log}): {shown}")
        return f"{', '.join(took)}: {change.why}"

    def begin(self, mesh, job, node):
        follower = mesh.follow("start", mesh.job_file(JOB | job), node=node)
        run = follower.first_line()
        if not run:
            raise AssertionError(f"no run began at node {node}: {follower.finish()}")
        return follower, run

    def see_end(self, mesh, run, victim, follower, survivors):
        """The run is stopped: its follower ends with success. The victim, which is back by then, tells the same. Returns the
        views' lines."""
        mesh.ctl_ok("stop", run, node=survivors[0])
        follower.finish().ends(0, "STOPPED")
        lines = check_end(survivors, run)
        self.assertEqual([one["members"] for one in lines], [[node.name for node in mesh.nodes], [node.name for node in survivors]])
        end = survivors[0].record(run)
        known = wait_recorded(victim, run, "STOPPED")
        self.assertEqual((known["step"], known["digest"], known["own"]["save"]), (end["step"], end["digest"], "nothing saved"), f"log {victim.log}")
        return lines


class Killed(Death):
    STEP = 12  # an evaluation follows it

    def die_in(self, phase):
        for repetition in range(REPETITIONS):
            with self.subTest(phase=phase, repetition=repetition):
                self.die_once(phase, victim=(repetition + PHASES.index(phase)) % 4)

    def die_once(self, phase, victim):
        with Mesh(4, MESH, per_node={victim: {"fault": f"kill@{phase}:{self.STEP}"}}) as mesh:
            survivors = [node for i, node in enumerate(mesh.nodes) if i != victim]
            follower, run = self.begin(mesh, {}, survivors[0])
            status = mesh[victim].wait()
            died, elapsed = time.time(), Elapsed()
            self.assertEqual(status, -signal.SIGKILL, f"{mesh[victim].name}, log {mesh[victim].log}, run {run}")
            report = self.see_gone_on(mesh, run, mesh[victim], died, elapsed, PEER_TIMEOUT + SLACK, survivors, [mesh[victim].name, " of step "])
            print(f"killed in {phase} of step {self.STEP}: {report}")
            mesh.configure(victim, fault=None)
            mesh[victim].start()
            mesh.wait_ready()
            before, after = self.see_end(mesh, run, mesh[victim], follower, survivors)
            self.assertEqual(after["ended"], "STOPPED")
            # Members differ by a step at most, and at most one is undone.
            committed = after["from"]["step"]
            self.assertTrue(self.STEP - 1 <= committed <= self.STEP + 1, f"run {run}: step {committed} was committed")
            # The state after so many steps is that of a run of so many steps.
            again = mesh.start(JOB | {"steps": committed})
            self.assertEqual(mesh.run(again)["digest"], after["from"]["digest"], f"run {run}: the state that view 2 begins with differs from that of a whole run of {committed} steps")
            if phase == "reduce":
                self.check_after_restart(mesh, run)

    def check_after_restart(self, mesh, run):
        """All tell the same end, and fetch gets the same at any of them."""
        mesh.restart()
        end = mesh[0].record(run)
        fetched = []
        for index, node in enumerate(mesh.nodes):
            shown = mesh.run(run, node=index)
            where = f"run {run} at {node.name} (log {node.log}): {shown}"
            self.assertEqual((shown["state"], shown["step"], shown["digest"]), ("STOPPED", end["step"], end["digest"]), where)
            fetched.append([read_safetensors(os.path.join(mesh.fetch(run, node=index), file)) for file in MODELS])
        self.assertTrue(all(one == fetched[0] for one in fetched), f"run {run}: the nodes' fetched models differ")

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
            survivors = [mesh[i] for i in (0, 1, 3)]
            mesh[2].signal(signal.SIGSTOP)
            stopped, elapsed = time.time(), Elapsed()
            report = self.see_gone_on(mesh, run, mesh[2], stopped, elapsed, PEER_TIMEOUT + SLACK, survivors, ["node-c"])
            print(f"stopped: {report}")
            # It wakes up, learns that the others went on, and suspects no member.
            mesh[2].signal(signal.SIGCONT)
            record = wait_recorded(mesh[2], run, "INTERRUPTED")
            self.assertRegex(record["reason"], "node-c was evicted: .*node-c.*; the run continues without it", f"log {mesh[2].log}")
            self.assertEqual(record["step"], changes(mesh[0], run)[0].start, "what it has is what the others went on with")
            self.see_end(mesh, run, mesh[2], follower, survivors)
            self.assertEqual(len(changes(mesh[0], run)), 1, "it cost one change")
            # The mesh is whole again.
            mesh.wait_ready()
            mesh.start(QUICK)

    def test_hung_in_backward(self):
        timeout = 3
        with Mesh(4, MESH, per_node={3: {"fault": "hang@backward:5"}}) as mesh:
            follower, run = self.begin(mesh, {"step-timeout": f"{timeout}s"}, 1)
            mesh.wait_for_step(run, 4, node=1)  # the newest that all have
            hung, elapsed = time.time(), Elapsed()  # at the latest now, or it is about to
            shown = wait_until("status shows where node-d is, and how long it may be", lambda: self.stuck(mesh, run), timeout)
            self.assertEqual(shown, {"name": "backward", "seconds": shown["seconds"], "limit_seconds": timeout})
            self.assertRegex(mesh.ctl_ok("status", run, node=0).out, rf"node-d +RUNNING .* backward [1-{timeout}] s of {timeout} s")
            report = self.see_gone_on(mesh, run, mesh[3], hung, elapsed, timeout + SLACK, mesh.nodes[:3], ["node-d is stuck in backward of step 5"])
            print(f"hung in backward: {report}")
            self.assertIn("node-d was evicted", wait_recorded(mesh[3], run, "INTERRUPTED")["reason"])
            self.see_end(mesh, run, mesh[3], follower, mesh.nodes[:3])
            self.assertEqual(mesh[3].end(), 0, f"a hung computation does not keep node-d from ending; log {mesh[3].log}")

    def stuck(self, mesh, run):
        """What status at another node says of node-d's phase, once it lasts."""
        phase = next(member["phase"] for member in mesh.run(run, node=0)["members"] if member["node"] == "node-d")
        return phase if phase is not None and (phase["seconds"] or 0) >= 1 else None

    def test_shut_down(self):
        with Mesh(4, MESH) as mesh:
            follower, run = self.begin(mesh, {}, 0)
            mesh.wait_for_step(run, 3)
            survivors = [mesh[i] for i in (0, 2, 3)]
            mesh[1].signal(signal.SIGTERM)
            told, elapsed = time.time(), Elapsed()
            grace = 1.0  # in which more of them may be shut down
            report = self.see_gone_on(mesh, run, mesh[1], told, elapsed, 1.0 + grace, survivors, ["node-b was shut down"])
            print(f"shut down: {report}")
            self.assertEqual(mesh[1].wait(), 0, f"log {mesh[1].log}")
            record = mesh[1].record(run)
            self.assertEqual((record["state"], record["reason"]), ("INTERRUPTED", "node-b was shut down"))
            _, metadata = read_safetensors(mesh[1].run_file(run, "model-raw.safetensors"))
            self.assertEqual(int(metadata["step"]), changes(mesh[0], run)[0].start, "it has saved what the others went on with")
            mesh[1].start()
            mesh.wait_ready()
            self.see_end(mesh, run, mesh[1], follower, survivors)


class CutOff(Death):
    """Packets of one node of four are dropped: the others go on, whatever they take for the cause; it waits for them."""

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
            survivors = [mesh[i] for i in (0, 1, 3)]
            cut(2)
            since, elapsed = time.time(), Elapsed()
            report = self.see_gone_on(mesh, run, mesh[2], since, elapsed, PEER_TIMEOUT + SLACK, survivors, ["node-c"])
            print(f"{what}: {report}")
            alone = wait_until(f"node-c (log {mesh[2].log}) is PAUSED", lambda: (shown := mesh.run(run, node=2))["state"] == "PAUSED" and shown)
            print(f"{what}, cut at {since:.0f}: node-c is PAUSED since {alone['since']}: {alone['reason']}")
            self.assertRegex(alone["reason"], r"quorum lost: . of 4 voters reachable; resumes when .*; `tgctl stop` keeps step \d+")
            self.network.heal()
            self.assertIn("node-c was evicted", wait_recorded(mesh[2], run, "INTERRUPTED")["reason"])
            self.see_end(mesh, run, mesh[2], follower, survivors)

    def test_one_direction(self):
        """What is sent to it still arrives: it hears the others, but no node hears it."""
        self.cut_off("cut off in one direction", self.network.cut)

    def test_both_directions(self):
        self.cut_off("cut off", self.network.isolate)


if __name__ == "__main__":
    unittest.main()
