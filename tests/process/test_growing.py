"""A run goes on while its mesh grows and shrinks. Newcomers sort before the others, so that each node's own list numbers the
nodes otherwise than the run does."""

import json
import os
import signal
import unittest

from addresses import free_port_pair
from changes import wait_recorded
from mesh import QUICK
from mesh import Mesh
from patience import PATIENCE, wait_until
from resuming import intervals, kill_all, start_all, wait_for_checkpoint
from test_joins import MESH, Joining
from test_recompute import recompute

JOB = QUICK | {"steps": 1000000, "schedule": "constant", "global-batch": 24, "digest-every": 4, "join-limit": "60s", "auto-resume": "true"}
START_REFUSED = 1


class Listed(Mesh):
    """A mesh whose files name some of its nodes."""

    def list(self, names, nodes=None):
        """These names stand in the files of these nodes, by default of those with these names."""
        for node in self.of(names) if nodes is None else nodes:
            with open(node.config) as file:
                others = [line for line in file if not line.startswith("peer =")]
            peers = [f"peer = {one.name}@{one.host}:{one.port}\n" for one in self.of(names)]
            with open(node.config + ".new", "w") as file:
                file.writelines(peers + others)
            os.rename(node.config + ".new", node.config)

    def of(self, names):
        return [node for node in self.nodes if node.name[-1] in names]


class Growing(Joining):
    def wait_for_members(self, mesh, run, names, after):
        """Until these are in one view; its number."""
        nodes = mesh.of(names)

        def view_of(node):
            record = node.record(run) if os.path.exists(node.run_file(run, "run.json")) else {}
            return record.get("view", 0) if sorted(record.get("members", [])) == [one.name for one in nodes] and record.get("state") == "RUNNING" else 0

        def there():
            views = {view_of(node) for node in nodes}
            return views.pop() if len(views) == 1 and min(views) > after else None

        view = wait_until(lambda: f"{names} are in {run}: views {[(node.name, view_of(node), node.log) for node in nodes]}", there)
        mesh.wait_for_step(run, mesh.run(run, nodes[-1])["step"] + 5, nodes[-1])
        return view

    def test_four_five_six_four(self):
        mesh = Listed(6, MESH, absent=(0, 1), keys=True)
        mesh.list("cdef", mesh.nodes)
        with mesh:
            run = mesh.detach(JOB, node=2)
            mesh.wait_for_step(run, 10, 2)
            view = 1
            for names in ("bcdef", "abcdef"):
                mesh.list(names)  # the members read it, and go on
                mesh.of(names)[0].start()
                view = self.wait_for_members(mesh, run, names, view)
            record = mesh[5].record(run)
            self.assertEqual(record["nodes"], [f"node-{letter}" for letter in "cdefba"], "a seat is given once")
            for gone in "cd":
                mesh.ctl_ok("leave", f"node-{gone}", node=mesh.of("e")[0])
                mesh.of(gone)[0].end()
            view = self.wait_for_members(mesh, run, "abef", view)
            mesh.list("abef")
            for node in mesh.of("abef"):
                wait_until(lambda node=node: f"{node.name} knows four nodes (log {node.log})", lambda node=node: [one["name"] for one in mesh.status(node=node)["nodes"]] == [f"node-{letter}" for letter in "abef"])
            self.assertEqual(mesh[5].record(run)["view"], view, "a list is no vote")
            # One that comes back keeps its seat.
            self.assertEqual(mesh[5].record(run)["nodes"], [f"node-{letter}" for letter in "cdefba"])
            mesh.ctl_ok("stop", run, node=5)
            record = wait_recorded(mesh[5], run, "STOPPED")
            members = [len(one["members"]) for one in intervals(mesh[5], run)]
            self.assertEqual((members[0], max(members), members[-1]), (4, 6, 4))
            code, out, err = recompute(os.path.dirname(mesh[5].run_file(run, "run.json")), patience=10 * PATIENCE)  # it has trained for minutes
            self.assertEqual((code, err), (0, ""), out)
            self.assertIn(f"digest {record['digest']}, as recorded", out)

    def test_a_resume_after_growing(self):
        """Each member has its seat again, also where its own list numbers it otherwise."""
        mesh = Listed(3, MESH, absent=(0,))
        mesh.list("bc", mesh.nodes)
        with mesh:
            run = mesh.detach(JOB | {"checkpoint-every": "200ms"}, node=1)
            wait_for_checkpoint(mesh, run, nodes=mesh.of("bc"))
            kill_all(mesh, mesh.of("bc"))
            mesh.list("abc")
            start_all(mesh)  # the two go on by themselves, and node-a joins
            self.wait_for_members(mesh, run, "abc", 1)
            kill_all(mesh)
            start_all(mesh)
            wait_until(lambda: f"{run} has lineage 3: {mesh[1].record(run)}", lambda: mesh[1].record(run)["lineage"] == 3)
            mesh.wait_for_step(run, mesh[1].record(run)["step"] + 5)
            mesh.ctl_ok("stop", run)
            record = wait_recorded(mesh[1], run, "STOPPED")
            self.assertEqual(record["nodes"], ["node-b", "node-c", "node-a"])
            self.assertEqual(intervals(mesh[1], run)[-1]["members"], record["nodes"])
            code, out, err = recompute(os.path.dirname(mesh[1].run_file(run, "run.json")), patience=10 * PATIENCE)
            self.assertEqual((code, err), (0, ""), out)
            self.assertIn(f"digest {record['digest']}, as recorded", out)

    def test_an_address_changes(self):
        """A member moves, and the others follow its peer line. Then one line is wrong for a while."""
        with Listed(3, MESH) as mesh:
            run = mesh.detach(JOB)
            mesh.wait_for_step(run, 10)
            moved = mesh[2]
            moved.signal(signal.SIGTERM)
            self.assertEqual(moved.wait(), 0, f"log {moved.log}")
            view = self.wait_for_members(mesh, run, "ab", 1)
            moved.port = free_port_pair(moved.host)
            mesh.list("abc")
            moved.start()
            view = self.wait_for_members(mesh, run, "abc", view)
            for node in mesh.of("ab"):
                self.assertIn('event=peer-lines added="" removed="" changed=node-c', node.log_text())
            with open(mesh[0].config, "a") as file:
                file.write("peer = node-c@nowhere\n")
            wait_until(lambda: f"node-a keeps its lines (log {mesh[0].log})", lambda: "event=peer-lines-kept" in mesh[0].log_text())
            step = mesh.run(run)["step"]
            mesh.wait_for_step(run, step + 5)
            self.assertEqual(mesh[0].record(run)["view"], view)

    def test_a_machine_is_added_while_the_run_is_paused(self):
        """It is taken in once the run goes on."""
        mesh = Listed(4, MESH, absent=(0,))
        mesh.list("bcd", mesh.nodes)
        with mesh:
            run = mesh.detach(JOB, node=1)
            mesh.wait_for_step(run, 10, 1)
            for node in mesh.of("cd"):
                node.kill()
            wait_until(lambda: f"node-b is PAUSED (log {mesh[1].log})", lambda: mesh.run(run, mesh[1])["state"] == "PAUSED")
            mesh.list("abcd")
            mesh[0].start()
            mesh.wait_ready(mesh.of("ab"))
            for node in mesh.of("cd"):
                node.start()
            self.wait_for_members(mesh, run, "abcd", 1)
            self.assertEqual(mesh[1].record(run)["nodes"], [f"node-{letter}" for letter in "bcda"])

    def test_a_start_means_the_list_of_who_is_asked(self):
        mesh = Listed(3, MESH)
        mesh.list("abc", [mesh[0], mesh[2]])
        mesh.list("ab", [mesh[1]])
        mesh.absent = {2}
        with mesh:
            mesh[2].start()
            answer = mesh.ctl("start", mesh.job_file(QUICK), node=0)
            self.assertIn("no peer line of node-b names node-c", answer.err)
            mesh.ctl_ok("start", mesh.job_file(QUICK), "--without", "node-c", node=0)

    def test_a_voter_that_was_taken_out(self):
        """What an interrupted run waits for is named, with the way out."""
        mesh = Listed(3, MESH)
        with mesh:
            run = mesh.detach(JOB)
            mesh.wait_for_step(run, 10)
            kill_all(mesh)
            mesh.list("ab")
            for node in mesh.of("ab"):
                node.start()
            mesh.wait_ready(mesh.of("ab"))
            told = f"missing: node-c, which no peer line names: put it back, or tgctl resume {run}"
            wait_until(lambda: f"{told}: {mesh.run(run)}", lambda: told in json.dumps(mesh.run(run)))
            mesh.ctl_ok("resume", run, "--detach")
            mesh.wait_for_step(run, 11)
            mesh.ctl_ok("stop", run)


if __name__ == "__main__":
    unittest.main()
