"""Nodes come back into a run that is on: killed, shut down, wiped or stopped for a while, each is given the state, proves
it, and is a member again, last in seniority. (At random moments: test_kills.)"""

import os
import shutil
import signal
import time
import unittest

from changes import changes, check_end, wait_for_change, wait_recorded
from disks import SmallDisks
from mesh import Mesh
from patience import wait_until
from resuming import wait_for_checkpoint
from test_recompute import recompute

JOB = {"steps": 1000000, "digest-every": 4, "evaluate-every": 50, "schedule": "constant", "join-limit": "60s", "auto-resume": "true"}
MESH = {"peer-timeout": "2s"}


class Joining(unittest.TestCase):
    def begin(self, mesh, job=None):
        follower = mesh.follow("start", mesh.job_file(JOB | (job or {})))
        run = follower.first_line()
        if not run:
            raise AssertionError(f"no run began: {follower.finish()}")
        mesh.wait_for_step(run, 10)
        return follower, run

    def kill(self, node):
        node.signal(signal.SIGKILL)
        node.wait()

    def wait_until_all_are_in(self, mesh, run, after):
        """Until every node is in one view of all of them, later than that; its number."""
        nodes = mesh.nodes
        names = [node.name for node in mesh.nodes]

        def view_of(node):
            record = node.record(run) if os.path.exists(node.run_file(run, "run.json")) else {}
            return record.get("view", 0) if sorted(record.get("members", [])) == names and record.get("state") in ("RUNNING", "PAUSED") else 0

        def there():
            views = {view_of(node) for node in nodes}
            return views.pop() if len(views) == 1 and min(views) > after else None

        view = wait_until(lambda: f"all nodes are in {run}: views {[(node.name, view_of(node), node.log) for node in nodes]}", there)
        mesh.wait_for_step(run, mesh.run(run)["step"] + 5)
        return view

    def finish(self, mesh, run, follower):
        mesh.ctl_ok("stop", run)
        if follower is not None:
            follower.finish().ends(0, "STOPPED")
        else:
            mesh.ctl_ok("wait", run)
        return check_end(mesh.nodes, run)


class ComesBack(Joining):
    def test_a_run_that_resumed_by_itself_from_an_older_state(self):
        """What the node that comes back has of the run is not lost, and it is in."""
        with Mesh(2, MESH) as mesh:
            _, run = self.begin(mesh)
            mesh[1].end()  # and keeps its state
            step = mesh[1].record(run)["step"]
            self.assertGreater(step, 0)
            wait_for_change(mesh[0], run, members=1)
            self.kill(mesh[0])
            mesh[0].start()
            mesh.wait_for_step(run, 5)
            mesh[1].start()
            self.wait_until_all_are_in(mesh, run, 1)
            kept = next(one for one in mesh.status(node=1)["runs"] if one["id"].startswith(f"{run}-"))
            self.assertEqual((kept["state"], kept["step"]), ("INTERRUPTED", step))
            self.assertIn("node-a continues it as lineage 2, from step 0; node-b has lineage 1", kept["reason"])
            self.assertIn(f"set aside from run {run}, which node-b joins again", kept["reason"])
            self.finish(mesh, run, None)

    def test_a_killed_member(self):
        """Any of them, the most senior one too; once more: it has to wait, but not for ever; with a wiped directory."""
        with Mesh(3, MESH) as mesh:
            _, run = self.begin(mesh)
            view = 1
            for victim, wiped in ((2, False), (2, False), (0, False), (1, True)):
                with self.subTest(victim=victim, wiped=wiped):
                    self.kill(mesh[victim])
                    if wiped:
                        shutil.rmtree(mesh[victim].state_dir)
                        wait_for_change(mesh[0], run, members=2)
                    mesh[victim].start()
                    view = self.wait_until_all_are_in(mesh, run, view)
                    status = mesh.run(run)
                    self.assertEqual(status["left"], [], status)
                    self.assertEqual(status["reason"], "", status)
                    self.assertIn(status["step"] - status["digest_step"], range(-1, JOB["digest-every"] + 1), status)
                    compared = {(row["digest_step"], row["digest"]) for row in status["members"]}
                    self.assertEqual(len(compared), len({step for step, _ in compared}), f"a member shows another digest of one step: {status}")
                    order = [row["seniority"] for row in status["members"]]
                    self.assertEqual(order[victim], 3, f"last in seniority: {order}")
            lines = self.finish(mesh, run, None)
            self.assertEqual(lines[-1]["view"], view)
            ended = [line["ended"] for line in lines]
            for node in mesh.nodes:
                self.assertIn(f"CHANGED: {node.name} joins", ended)

    def test_two_nodes(self):
        """Either dies and comes back. The junior cannot go on alone: it is PAUSED until the other is there to vote."""
        with Mesh(2, MESH) as mesh:
            _, run = self.begin(mesh)
            view = 1
            for victim in (1, 0):
                self.kill(mesh[victim])
                mesh[victim].start()
                view = self.wait_until_all_are_in(mesh, run, view)
            self.finish(mesh, run, None)

    def test_an_end_further_on(self):
        """It hears that the run was stopped at a later step than its own; a resume from one between contradicts nothing that it has."""
        with Mesh(3, MESH) as mesh:
            _, run = self.begin(mesh, {"checkpoint-every": "1s", "auto-resume": "false"})
            self.kill(mesh[2])
            wait_for_change(mesh[0], run, members=2)
            begun = mesh.run(run)["step"]
            wait_for_checkpoint(mesh, run, begun + 1, mesh.nodes[:2])
            mesh.wait_for_step(run, mesh.run(run)["step"] + 50)
            mesh.ctl_ok("stop", run)
            for node in mesh.nodes[:2]:
                wait_recorded(node, run, "STOPPED")
                os.unlink(node.run_file(run, "state.safetensors"))  # a checkpoint is the newest state that is left
            mesh[2].start()
            wait_recorded(mesh[2], run, "STOPPED")
            mesh.wait_ready()
            mesh.ctl_ok("resume", run, "--detach")
            self.assertGreater(mesh.run(run)["from_step"], 0)
            self.wait_until_all_are_in(mesh, run, 1)
            self.assertNotIn("event=two-lineages", mesh[2].log_text())
            self.finish(mesh, run, None)

    def test_full_disks_of_the_others(self):
        """It is given the lines of metrics.jsonl, too, that their disks do not take."""
        with SmallDisks(3, MESH) as mesh:
            if mesh.why_not:
                self.skipTest(mesh.why_not)
            _, run = self.begin(mesh)
            self.kill(mesh[2])
            wait_for_change(mesh[0], run, members=2)
            for donor in (0, 1):
                mesh.fill(mesh[donor])
            mesh.wait_for_step(run, mesh.run(run)["step"] + 200)
            mesh[2].start()
            self.wait_until_all_are_in(mesh, run, 1)
            for donor in (0, 1):
                mesh.free(mesh[donor])
            self.finish(mesh, run, None)

    def test_a_rolling_restart(self):
        with Mesh(3, MESH) as mesh:
            follower, run = self.begin(mesh)
            view = 1
            for node in mesh.nodes:
                node.signal(signal.SIGTERM)
                self.assertEqual(node.wait(), 0, f"log {node.log}")
                node.start()
                view = self.wait_until_all_are_in(mesh, run, view)
            self.finish(mesh, run, None)


class Leave(Joining):
    """No step is lost, and it stays out until it is told to come back, also when it is restarted. (Any member, of any
    number: TrainingFaults.)"""

    def test_the_most_senior_one(self):
        with Mesh(3, MESH) as mesh:
            _, run = self.begin(mesh)
            leaver, other = mesh[0], mesh[1]
            left = mesh.ctl_ok("leave", leaver.name, node=other).out
            self.assertRegex(left, rf"^{leaver.name} left run {run} at step \d+\n$")
            record = wait_recorded(leaver, run, "INTERRUPTED")
            self.assertEqual(record["reason"], f"{leaver.name} left on request; the run continues without it")
            change = wait_for_change(other, run, members=2)
            self.assertEqual(change.start, record["step"], "the others begin with what it had confirmed")
            self.assertIn(f"at step {change.start}\n", left)
            mesh.restart([0])
            mesh.wait_for_step(run, mesh.run(run, node=other)["step"] + 5, node=other)
            time.sleep(5)  # it would be in again by then
            self.assertEqual(len(other.record(run)["members"]), 2)
            self.assertEqual(mesh.ctl_ok("join", leaver.name, node=other).out, f"{leaver.name} rejoins run {run}\n")
            self.wait_until_all_are_in(mesh, run, 2)
            self.finish(mesh, run, None)

    def test_refusals(self):
        with Mesh(2, MESH) as mesh:
            self.assertIn("node-b is in no run", mesh.ctl("leave", "node-b").err)
            self.assertIn("no active run that node-b has left", mesh.ctl("join", "node-b").err)
            self.assertIn("node-x", mesh.ctl("leave", "node-x").err)


class PowerBack(Joining):
    """All nodes die. Some of them know more than the others: those go on, and the others are given it."""

    JOB = {"checkpoint-every": "1s"}

    def kill_all(self, mesh, nodes=None):
        nodes = nodes or mesh.nodes
        for node in nodes:
            node.signal(signal.SIGKILL)
        for node in nodes:
            node.wait()

    def wait_for_a_checkpoint(self, nodes, run, view):
        """Waits until all of these nodes have a checkpoint of that view."""
        for node in nodes:
            folder = os.path.dirname(node.run_file(run, "run.json"))
            wait_until(lambda: f"{node.name} has a checkpoint of view {view}: {os.listdir(folder)}",
                       lambda: any(name.startswith(f"checkpoint-000001-{view:06d}-") and name.endswith(".safetensors") for name in os.listdir(folder)))  # fmt: skip

    def wait_until_it_goes_on(self, mesh, run):
        wait_until(lambda: f"all are in {run}: {[(node.name, node.record(run)['lineage'], node.record(run)['members']) for node in mesh.nodes if os.path.exists(node.run_file(run, 'run.json'))]}",
                   lambda: all(os.path.exists(node.run_file(run, "run.json")) and node.record(run)["state"] == "RUNNING" and node.record(run)["lineage"] == 2 and
                               len(node.record(run)["members"]) == len(mesh) for node in mesh.nodes))  # fmt: skip

    def test_survivors_of_a_lost_node_resume_by_themselves(self):
        with Mesh(3, MESH) as mesh:
            _, run = self.begin(mesh, self.JOB)
            self.kill(mesh[0])  # the first node, which begins for all
            wait_for_change(mesh[1], run, members=2)
            self.wait_for_a_checkpoint(mesh.nodes[1:], run, 2)
            self.kill_all(mesh, mesh.nodes[1:])
            before = max(node.record(run)["step"] for node in mesh.nodes[1:])
            mesh.start_nodes()
            self.wait_until_it_goes_on(mesh, run)
            self.assertGreaterEqual(mesh.run(run)["step"], before, "nothing that was saved is done again")
            self.finish(mesh, run, None)

    def test_a_node_that_missed_a_beginning_and_the_end_changes_neither(self):
        """The first node, which begins for all: it wants to go on with what is over, and has a state that no other node has."""
        with Mesh(3, MESH) as mesh:
            _, run = self.begin(mesh, self.JOB)
            self.wait_for_a_checkpoint(mesh.nodes, run, 1)
            self.kill(mesh[0])
            wait_for_change(mesh[1], run, members=2)
            self.wait_for_a_checkpoint(mesh.nodes[1:], run, 2)
            self.kill_all(mesh, mesh.nodes[1:])
            mesh[1].start()
            mesh[2].start()
            wait_until(lambda: f"the two go on: {[node.record(run) for node in mesh.nodes[1:]]}",
                       lambda: all(node.record(run)["state"] == "RUNNING" and node.record(run)["lineage"] == 2 for node in mesh.nodes[1:]))  # fmt: skip
            mesh.ctl_ok("stop", run, node=1)
            mesh.ctl_ok("wait", run, node=1)
            mesh[0].start()
            mesh.wait_ready()

            # While node-a's proposal is pending, for some milliseconds, it shows STARTING.
            wait_until(lambda: f"node-a is told: {mesh[0].log}", lambda: "knows a later lineage" in mesh[0].log_text())
            self.assertEqual([mesh.run(run, node=node)["state"] for node in range(3)], ["STOPPED"] * 3)
            for node in range(3):
                self.assertEqual([member["node"] for member in mesh.run(run, node=node)["members"]], ["node-b", "node-c"])
                mesh.fetch(run, node=node)

    def test_it_waits_for_its_members_alone(self):
        """The first node is dead for good. The others went on, lose power, and go on when they are back; by order they would
        as well if one of them were not. A new machine under its name comes in later."""
        with Mesh(3, MESH) as mesh:
            _, run = self.begin(mesh, self.JOB)
            self.kill(mesh[0])
            shutil.rmtree(mesh[0].state_dir)
            wait_for_change(mesh[1], run, members=2)
            self.wait_for_a_checkpoint(mesh.nodes[1:], run, 2)
            self.kill_all(mesh, mesh.nodes[1:])
            mesh[1].start()
            wait_until(lambda: f"status names node-c alone: {mesh.ctl('status', run, node=mesh[1]).out}",
                       lambda: "resumes automatically when its members return (missing: node-c" in " ".join(mesh.ctl("status", run, node=mesh[1]).out.split()))  # fmt: skip
            mesh[2].start()
            wait_until(lambda: f"the two go on: {[node.record(run) for node in mesh.nodes[1:]]}",
                       lambda: all(node.record(run)["state"] == "RUNNING" and node.record(run)["lineage"] == 2 for node in mesh.nodes[1:]))  # fmt: skip
            self.kill_all(mesh, mesh.nodes[1:])
            mesh[2].start()
            refused = mesh.ctl("resume", run, "--without", "node-c", node=mesh[2])
            refused.ends(2, "--without node-c: this node got the request; ask another one: --address")
            mesh.follow("resume", run, "--without", "node-a", "--without", "node-b", node=mesh[2])
            wait_until(lambda: f"one goes on: {mesh[2].record(run)}", lambda: mesh[2].record(run)["members"] == ["node-c"])
            mesh[0].start()
            mesh[1].start()
            self.wait_until_all_are_in(mesh, run, 0)
            self.finish(mesh, run, None)

    def test_a_wiped_node_is_named_and_a_resume_continues_without_its_states(self):
        with Mesh(3, MESH) as mesh:
            _, run = self.begin(mesh, self.JOB)
            self.wait_for_a_checkpoint(mesh.nodes, run, 1)
            self.kill_all(mesh)
            shutil.rmtree(mesh[1].state_dir)
            mesh.start_nodes()

            def named():
                text = mesh.ctl("status", run, node=mesh[0]).out
                return text if "node-b has no run" in " ".join(text.split()) else None

            text = wait_until(lambda: f"status names node-b: {mesh.ctl('status', run, node=mesh[0]).out}", named)
            self.assertIn(f"tgctl resume {run}", " ".join(text.split()))
            follower = mesh.follow("resume", run, node=mesh[0])
            self.wait_until_it_goes_on(mesh, run)
            self.finish(mesh, run, follower)


class Without(Joining):
    def test_a_start_without_a_node(self):
        """That is dead for good, it seems; it comes in when it is there after all."""
        for away in (2, 0):
            with self.subTest(away=away), Mesh(3, MESH, absent=(away,)) as mesh:
                here, name = mesh[1], mesh[away].name
                mesh.ctl("start", mesh.job_file(JOB), "--without", "node-x", node=here).ends(2, "--without node-x: no node has that name")
                dry = mesh.ctl_ok("start", mesh.job_file(JOB), "--without", name, "--dry-run", node=here).out
                self.assertRegex(dry, r"members +2\n")
                follower = mesh.follow("start", mesh.job_file(JOB), "--without", name, node=here)
                run = follower.first_line()
                mesh.wait_for_step(run, 10, node=here)
                self.assertEqual(here.record(run)["members"], [node.name for i, node in enumerate(mesh.nodes) if i != away])
                mesh[away].start()
                self.wait_until_all_are_in(mesh, run, 1)
                lines = self.finish(mesh, run, None)
                self.assertEqual(len(lines[0]["members"]), 2)
                code, out, err = recompute(mesh.fetch(run, node=here))
                self.assertEqual(code, 0, f"{out} {err}")


class StaysOut(Joining):
    def test_without_a_return(self):
        """join-limit = 0s: it says why, and the others go on."""
        with Mesh(3, MESH) as mesh:
            follower, run = self.begin(mesh, {"join-limit": "0s"})
            self.kill(mesh[2])
            wait_for_change(mesh[0], run, members=2)
            mesh[2].start()
            wait_until(lambda: f"{mesh[2].name} (log {mesh[2].log}) is told why not", lambda: "join-limit is 0" in mesh[2].log_text())
            mesh.wait_for_step(run, mesh.run(run)["step"] + 20)
            self.assertEqual(len(changes(mesh[0], run)), 1)
            mesh.ctl_ok("stop", run)
            follower.finish().ends(0, "STOPPED")


if __name__ == "__main__":
    unittest.main()
