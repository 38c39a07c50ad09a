"""A mesh is cut in two, and a person resumes the run in one part while the other continues: once both hear each other the lower
lineage ends, both are named, and neither is lost."""

import os
import re
import shutil
import unittest

from changes import wait_recorded
from history import Story
from mesh import QUICK, Mesh
from network import Network, NetworkUnavailable
from patience import wait_until

JOB = {"model": "mlp", "hidden": 32, "steps": 1000000, "join-limit": None, "auto-resume": None, "schedule": "constant", "checkpoint-every": "1s"}
MESH = {"peer-timeout": "2s", "insecure": "true"}
SENIOR, JUNIOR = 0, 1  # with two equal members the lower seat is the senior, which continues alone


class TwoLineages(unittest.TestCase):
    def setUp(self):
        try:
            self.network = Network(2, cut=True).__enter__()
        except NetworkUnavailable as reason:
            self.skipTest(str(reason))
        self.addCleanup(self.network.__exit__)

    def mesh(self):
        return Mesh(2, MESH, hosts=self.network.addresses, prefixes=self.network.prefixes)

    def split(self, mesh, job, *settings):
        """A run that node-a continues without node-b, where it was PAUSED, stopped and resumed; the step of that."""
        run = mesh.detach(JOB | job)
        mesh.wait_for_step(run, 3)
        self.network.isolate(JUNIOR)
        wait_until(
            lambda: f"node-b (log {mesh[JUNIOR].log}) is PAUSED", lambda: "keeps step" in mesh.run(run, node=JUNIOR)["reason"]
        )
        stopped = mesh.ctl("stop", run, node=JUNIOR)
        stopped.ends(10, "node-a may still be running it")
        resumed = mesh.ctl_ok("resume", run, "--without", "node-a", *settings, "--detach", node=JUNIOR)
        self.assertIn("node-a may still be running it; --without node-a ends its part when it is heard again", resumed.err)
        return run, int(re.search(r"resumes at step (\d+)", resumed.err)[1])

    def aside(self, mesh, run, state):
        """The id under which node-a has set its lineage aside."""
        def found():
            ids = [one for one in os.listdir(os.path.join(mesh[SENIOR].state_dir, "runs")) if re.fullmatch(re.escape(run) + "-[0-9a-f]{16}", one)]
            return ids[0] if ids else None

        kept = wait_until(lambda: f"node-a (log {mesh[SENIOR].log}) has set {run} aside", found)
        why = f"set aside from run {run}, which node-a joins by tgctl join node-a"
        wait_until(lambda: f"its record says why: {mesh[SENIOR].record(kept)}", lambda: why in mesh[SENIOR].record(kept)["aside"])
        record = wait_recorded(mesh[SENIOR], kept, state)
        return kept, record

    def test_the_lower_one_ends(self):
        with self.mesh() as mesh:
            run, begun = self.split(mesh, {})
            mesh.wait_for_step(run, begun + 20, node=SENIOR)
            mesh.wait_for_step(run, begun + 2, node=JUNIOR)
            self.network.heal()
            kept, record = self.aside(mesh, run, "INTERRUPTED")
            self.assertRegex(record["aside"], rf"node-b continues it as lineage 2, from step {begun}; node-a has lineage 1 at step \d+")
            self.assertGreaterEqual(record["step"], begun + 20)
            wait_until("node-a's log names both", lambda: "event=two-lineages" in mesh[SENIOR].log_text())
            mesh.wait_ready()
            shown = {one["id"]: one for one in mesh.status(node=JUNIOR)["runs"]}
            self.assertEqual((shown[run]["state"], shown[run]["lineage"]), ("RUNNING", 2), shown)
            self.assertIn("node-b continues it as lineage 2", shown[kept]["reason"])
            for node in (SENIOR, JUNIOR):
                shown = {one["id"]: one["state"] for one in mesh.status(node=node)["runs"]}
                self.assertEqual(shown, {run: "RUNNING", kept: "INTERRUPTED"})
            examined = mesh.ctl("doctor", "--no-bandwidth", "--json", node=JUNIOR)
            self.assertIn(f"see tgctl status {kept}, then fetch or delete that run", examined.out)
            folder = mesh.fetch(kept, "--partial", node=SENIOR)
            self.assertTrue(os.path.exists(os.path.join(folder, "model.safetensors")))
            # It comes in by order only.
            mesh.wait_for_step(run, mesh.run(run, node=JUNIOR)["step"] + 50, node=JUNIOR)
            self.assertEqual(len(mesh.run(run, node=JUNIOR)["members"]), 1)
            mesh.ctl_ok("join", "node-a")
            wait_until(lambda: f"node-a joins {run}: {mesh.run(run)}", lambda: len(mesh.run(run)["members"]) == 2)
            mesh.ctl_ok("stop", run)
            mesh[SENIOR].end()
            mesh[SENIOR].start()
            mesh.wait_ready()
            self.assertEqual(mesh[SENIOR].record(kept)["state"], "INTERRUPTED", "also after a restart")
            mesh.start(QUICK)

    def test_a_completed_model_stays(self):
        with self.mesh() as mesh:
            run, _ = self.split(mesh, {"steps": 5000}, "--set", "steps=1000000")
            before = wait_recorded(mesh[SENIOR], run, "COMPLETED")
            self.network.heal()
            kept, record = self.aside(mesh, run, "COMPLETED")
            self.assertEqual((record["digest"], record["files"]["model.safetensors"]), (before["digest"], before["files"]["model.safetensors"]))
            mesh.wait_ready()
            mesh.fetch(kept, node=JUNIOR)
            mesh.ctl_ok("stop", run)

    def test_one_that_has_ended_is_heard(self):
        with self.mesh() as mesh:
            run, begun = self.split(mesh, {}, "--set", "steps=5000")
            wait_recorded(mesh[JUNIOR], run, "COMPLETED")
            mesh.wait_for_step(run, begun + 20, node=SENIOR)
            self.network.heal()
            self.aside(mesh, run, "INTERRUPTED")
            self.assertEqual(mesh[JUNIOR].record(run)["state"], "COMPLETED")


def views_of(node, run):
    return {(interval.view, interval.members) for interval in Story.read(node, run).intervals()}


class OldVoteInACut(unittest.TestCase):
    """A voter is set back to a copy of its disk where nobody alive has heard what it told since: two views of one number."""

    def test_one_of_two_views_ends(self):
        try:
            network = Network(3, cut=True).__enter__()
        except NetworkUnavailable as reason:
            self.skipTest(str(reason))
        self.addCleanup(network.__exit__)
        with Mesh(3, MESH, hosts=network.addresses, prefixes=network.prefixes) as mesh:
            first, other, voter = mesh.nodes
            run = mesh.detach(JOB)
            mesh.wait_for_step(run, 3)
            older = os.path.join(mesh.folder, "older")
            voter.copy_state(older)
            network.isolate(1)
            voter.kill()  # back at once it votes, without a state
            voter.start()
            wait_until(lambda: f"node-a goes on alone: {mesh.run(run)}", lambda: first.record(run)["members"] == ["node-a"])
            network.isolate(0)
            voter.kill()
            shutil.rmtree(voter.state_dir)
            os.rename(older, voter.state_dir)
            network.heal(1)
            voter.start()
            wait_until(lambda: f"node-b has a view 2, too: {mesh.run(run, node=1)}", lambda: (2, ("node-b",)) in views_of(other, run))
            self.assertIn((2, ("node-a",)), views_of(first, run))
            mesh.wait_for_step(run, mesh.run(run, node=1)["step"] + 20, node=1)
            network.heal()
            def aside():
                return next(((node, one) for node in (first, other) for one in os.listdir(os.path.join(node.state_dir, "runs")) if one.startswith(f"{run}-")), None)

            gave_way, kept = wait_until(lambda: f"one gives way: {mesh.status()['runs']}", aside)
            why = rf"view \d+ takes step \d+ of {gave_way.name} back to \d+, for a voter had an old vote; set aside from run {run}"
            wait_until("its record says why", lambda: re.search(why, gave_way.record(kept)["aside"]))
            wait_recorded(gave_way, kept, "INTERRUPTED")
            winner = other if gave_way is first else first
            self.assertEqual(winner.record(run)["state"], "RUNNING")
            mesh.wait_ready()
            folder = mesh.fetch(kept, "--partial", node=mesh.nodes.index(winner))
            self.assertTrue(os.path.exists(os.path.join(folder, "model.safetensors")))


if __name__ == "__main__":
    unittest.main()
