"""Saved before said: what becomes of a run when disks are full or fail and members die while they save."""

import filecmp
import os
import re
import signal
import unittest

from files import read_safetensors
from mesh import Mesh
from patience import wait_until

MODELS = ("model.safetensors", "model-raw.safetensors")
# The files of a new node's first run before its end: the directory's id, the record, the vote. Each is written and renamed.
BEGIN_FILES = 3
JOB = {"checkpoint-every": "0s"}


class Saving(unittest.TestCase):
    def fetch_everywhere(self, mesh, run, *options):
        """Expects the same bytes from every node; returns the folder of one."""
        folders = [mesh.fetch(run, *options, node=index) for index in range(len(mesh))]
        for folder in folders[1:]:
            match, differ, broken = filecmp.cmpfiles(folders[0], folder, MODELS, shallow=False)
            self.assertEqual((differ, broken), ([], []), f"run {run}: {folders[0]} and {folder}")
        return folders[0]

    def heal(self, mesh):
        """Restarts all nodes without any fault."""
        for index in range(len(mesh)):
            mesh.configure(index, fault=None)
        mesh.restart()

    def one_truth(self, mesh, run, state, saves):
        """Each node tells this end, and what each member has; also in its own record."""
        for index, node in enumerate(mesh.nodes):
            told = {}

            def all_told():
                shown = mesh.run(run, node=index)
                told.update(state=shown["state"], **{row["node"]: row["save"] for row in shown["members"]})
                return told == {"state": state} | {one.name: save for one, save in zip(mesh.nodes, saves)}

            wait_until(lambda: f"{node.name} (log {node.log}) tells {state} {saves} of run {run}, not {told}", all_told)
            wait_until(lambda: f"the record of {node.name} says {state}", lambda: node.record(run)["state"] == state)
        self.assertEqual(len({node.record(run)["reason"] for node in mesh.nodes}), 1)


class OneDisk(Saving):
    def one_bad_disk(self, fault, words):
        with Mesh(3, per_node={1: {"fault": fault}}) as mesh:
            answer = mesh.ctl("start", mesh.job_file(JOB), node=0).ends(6, "COMPLETED", "node-b could not save", words)
            run = answer.out.strip()
            mesh.wait_ended(run)
            for index in range(3):
                shown = mesh.run(run, node=index)
                self.assertEqual(shown["state"], "COMPLETED")
                self.assertIn("node-b could not save: cannot write", shown["reason"])
                mesh.ctl("wait", run, node=index).ends(6, words)
            folder = self.fetch_everywhere(mesh, run)
            self.assertTrue(filecmp.cmp(os.path.join(folder, MODELS[0]), mesh[2].run_file(run, MODELS[0]), shallow=False))
            self.heal(mesh)
            shown = mesh.run(run, node=1)
            self.assertEqual(shown["state"], "COMPLETED", shown)
            return self.check_after(mesh, run)

    def check_after(self, mesh, run):
        wait_until("node-b knows that it has nothing", lambda: mesh.run(run, node=1)["members"][1]["save"] not in ("saved", "-"))
        self.fetch_everywhere(mesh, run)
        for index in range(3):
            mesh.ctl("wait", run, node=index).ends(6, "node-b")

    def test_full(self):
        """Not even the record can be written: node-b remembers an active run, and learns the outcome from the others."""
        self.one_bad_disk(f"full@write:{BEGIN_FILES + 1}", "No space left on device")

    def test_rename(self):
        self.one_bad_disk(f"fail@rename:{BEGIN_FILES + 1}", "Input/output error")


class AllDisks(Saving):
    def test_the_state_stays_in_memory(self):
        job = JOB | {"link-mbps": 1000}  # A window of a measured link is another one at each start, and memory with it.
        with Mesh(2) as mesh:
            plan = mesh.ctl_ok("start", mesh.job_file(job), "--dry-run").out
            megabytes = float(re.search(r"memory +([\d.]+) MB per node", plan).group(1))
            for index in range(2):  # whose directories have their ids
                mesh.configure(index, fault=f"full@write:{BEGIN_FILES}", memory_mib=int(megabytes * 1e6 / 2**20) + 2)
            mesh.restart()
            answer = mesh.ctl("start", mesh.job_file(job), node=0).ends(6, "in memory", "No space left on device")
            run = answer.out.strip()
            mesh.wait_ended(run)
            shown = mesh.run(run, node=1)
            self.assertEqual([row["save"] for row in shown["members"]], ["in memory"] * 2, shown)
            # It counts in the memory of the next run.
            refused = mesh.ctl("start", mesh.job_file(job), "--dry-run")
            refused.ends(1, "memory", run)
            folder = os.path.join(mesh.folder, "fetched")
            mesh.ctl_ok("fetch", run, "-o", folder, node=1)
            tensors, metadata = read_safetensors(os.path.join(folder, MODELS[0]))
            self.assertEqual((metadata["run"], metadata["step"]), (run, "10"))
            self.assertTrue(tensors)
            with open(os.path.join(folder, "metrics.jsonl")) as file:  # No room for it: nothing, or whole lines.
                self.assertEqual(file.read(), "")
            # Reading drops nothing.
            self.assertEqual([row["save"] for row in mesh.run(run)["members"]], ["in memory"] * 2)
            self.fetch_everywhere(mesh, run)
            mesh.ctl("start", mesh.job_file(job), "--dry-run").ends(1, "memory", run, "tgctl fetch", "tgctl delete")
            mesh.ctl_ok("delete", run)
            mesh.ctl_ok("start", mesh.job_file(job), "--dry-run")

    def test_deleted(self):
        with Mesh(2, {"fault": f"full@write:{BEGIN_FILES + 1}"}) as mesh:
            run = mesh.ctl("start", mesh.job_file(JOB)).ends(6).out.strip()
            mesh.wait_ended(run)
            mesh.ctl_ok("delete", run, node=1)
            mesh.ctl("status", run).ends(4)


class SmallFiles(Saving):
    def test_a_limit_of_the_size_of_files_is_a_full_disk(self):
        limited = ["sh", "-c", 'ulimit -f 128; exec "$@"', "sh"]  # blocks of 512 bytes
        mesh = Mesh(2)
        for node in mesh.nodes:
            node.prefix = limited
        with mesh:
            for node in mesh.nodes:
                node.prefix = []
            run = mesh.ctl("start", mesh.job_file(JOB)).ends(6, "in memory", "File too large").out.strip()
            mesh.wait_ended(run)
            self.fetch_everywhere(mesh, run)
            # tgctl fetch meets the same limit.
            mesh[0].prefix = limited
            folder = os.path.join(mesh.folder, "limited")
            mesh.ctl("fetch", run, "-o", folder).ends(1, "File too large")
            self.assertEqual(os.listdir(folder), [])
            mesh[0].prefix = []


class DeathWhileSaving(Saving):
    def test_at_every_file(self):
        """A rename of the save is the last thing that node-b does, that of the first model or that of its record; then it comes
        back. (At any other call: test_kills.)"""
        for call, left in ((1, "nothing saved"), (4, "saved")):
            with self.subTest(rename=call), Mesh(3, per_node={1: {"fault": f"kill@rename:{BEGIN_FILES + call}"}}) as mesh:
                follower = mesh.follow("start", mesh.job_file(JOB), node=2)
                run = follower.first_line()
                self.assertEqual(mesh[1].wait(), -signal.SIGKILL)
                follower.finish().ends(6, "COMPLETED", "node-b")  # was lost before it said what it has
                self.assertEqual(mesh.run(run)["state"], "COMPLETED")
                self.heal(mesh)
                self.one_truth(mesh, run, "COMPLETED", ("saved", left, "saved"))
                self.fetch_everywhere(mesh, run)
                self.assertEqual([name for name in os.listdir(os.path.dirname(mesh[1].run_file(run, ""))) if "partial" in name], [])

    def test_after_the_save_and_before_the_verdict(self):
        # The fifth rename of the end is that of the verdict's record.
        with Mesh(3, per_node={1: {"fault": f"kill@rename:{BEGIN_FILES + 5}"}}) as mesh:
            follower = mesh.follow("start", mesh.job_file(JOB), node=0)
            run = follower.first_line()
            self.assertEqual(mesh[1].wait(), -signal.SIGKILL)
            follower.finish()
            self.heal(mesh)
            self.one_truth(mesh, run, "COMPLETED", ("saved", "saved", "saved"))
            self.fetch_everywhere(mesh, run)
            mesh.ctl_ok("wait", run, node=1)


class Checkpoints(Saving):
    LONG = {"steps": 100000, "checkpoint-every": "200ms"}

    def wait_for_checkpoints(self, mesh, run, count):
        def there():
            return all(node.log_text().count("event=checkpoint ") >= count for node in mesh.nodes)

        wait_until(lambda: f"{count} checkpoints of every node", there)

    def test_all_killed(self):
        with Mesh(2) as mesh:
            run = mesh.detach(self.LONG)
            self.wait_for_checkpoints(mesh, run, 3)
            for node in mesh.nodes:
                node.kill()
            for node in mesh.nodes:
                kept = [name for name in os.listdir(os.path.dirname(node.run_file(run, ""))) if name.endswith(".safetensors")]
                self.assertIn(len(kept), (1, 2, 3), kept)  # the third one's elder was about to go
            self.heal(mesh)
            self.one_truth(mesh, run, "INTERRUPTED", ("saved", "saved"))
            folder = self.fetch_everywhere(mesh, run, "--partial")
            tensors, metadata = read_safetensors(os.path.join(folder, MODELS[1]))
            steps = int(metadata["step"])
            self.assertGreater(steps, 0)
            again = mesh.start({"steps": steps})
            expected, _ = read_safetensors(os.path.join(mesh.fetch(again), MODELS[1]))
            self.assertEqual(expected, tensors, f"the checkpoint of step {steps} is another state than that of a run of {steps}")

    def test_a_disk_that_fails_once_costs_one_checkpoint(self):
        with Mesh(2, per_node={0: {"fault": f"fail@rename:{BEGIN_FILES + 1}"}}) as mesh:
            run = mesh.detach(self.LONG)
            wait_until("a checkpoint fails", lambda: "event=checkpoint-failed" in mesh[0].log_text())
            failed_at = mesh[0].log_text().count("event=checkpoint ")
            wait_until("the next one is written", lambda: mesh[0].log_text().count("event=checkpoint ") > failed_at + 1)
            mesh.ctl_ok("stop", run)
            mesh.wait_ended(run)
            self.one_truth(mesh, run, "STOPPED", ("saved", "saved"))
            for node in mesh.nodes:  # the end has replaced them
                kept = [name for name in os.listdir(os.path.dirname(node.run_file(run, ""))) if "checkpoint" in name]
                self.assertLessEqual(len(kept), 2, kept)  # to go on from


if __name__ == "__main__":
    unittest.main()
