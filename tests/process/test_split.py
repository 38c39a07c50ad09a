"""split = speed: the members' shares of a batch follow how fast each computes, and stay what they were in a run that goes on."""

import os
import unittest

from files import write_cifar10
from mesh import Mesh
from patience import wait_until
from resuming import kill_all, start_all, stretches, wait_for_checkpoint, whole
from test_digests import has_avx2

JOB = {"split": "speed", "global-batch": 64, "steps": 60, "data-test": 31, "evaluate-every": 20}
SLOW = {"ONEDNN_MAX_CPU_ISA": "SSE41"}  # a third of the speed on a processor with AVX2


def slow_mesh(*arguments, **keywords):
    """node-b computes with the oldest instructions."""
    mesh = Mesh(*arguments, **keywords)
    mesh[1].environment = dict(SLOW)
    return mesh


@unittest.skipUnless(has_avx2(), "no node can be made slower: this processor has no AVX2")
class Speed(unittest.TestCase):
    def samples(self, mesh, run, node=0):
        return {member["node"]: member["samples"] for member in mesh.run(run, node)["members"]}

    def expect_uneven(self, shares):
        """Both know better than their weights, which say the opposite."""
        self.assertEqual(sum(shares.values()), 64, shares)
        self.assertGreater(shares["node-a"], shares["node-b"] + 8, shares)
        self.assertGreater(shares["node-b"], 0, shares)

    def test_two_uneven_nodes(self):
        with slow_mesh(2, per_node={1: {"weight": 3}}) as mesh:
            plan = mesh.ctl_ok("start", mesh.job_file(JOB), "--dry-run").out
            self.assertIn("64, split by weight: node-a 16, node-b 48", plan)
            self.assertIn("split = speed", plan)
            run = mesh.start(JOB, node=1)
            whole(mesh, run)
            shares = self.samples(mesh, run)
            self.expect_uneven(shares)
            self.assertEqual(self.samples(mesh, run, node=1), shares)
            a, b = (node.record(run) for node in mesh.nodes)
            self.assertEqual(a["weights"], b["weights"])
            self.assertEqual(max(a["weights"]), 1000)
            self.assertEqual((a["own"]["samples"], b["own"]["samples"]), (shares["node-a"], shares["node-b"]))
            for node in mesh.nodes:
                self.assertIn(f"node-a {shares['node-a']}, node-b {shares['node-b']}", node.log_text().split("event=batch-split", 1)[1].splitlines()[0])
            self.assertIn(f"node-a {shares['node-a']}, node-b {shares['node-b']}", mesh.ctl_ok("status", run).out)

    def test_kept_by_a_run_that_goes_on(self):
        job = JOB | {"steps": 300, "checkpoint-every": "50ms", "auto-resume": "true"}
        with slow_mesh(2) as mesh:
            run = mesh.detach(job)
            wait_for_checkpoint(mesh, run, 20)
            shares, weights = self.samples(mesh, run), mesh[0].record(run)["weights"]
            self.expect_uneven(shares)
            kill_all(mesh)
            start_all(mesh)
            wait_until(lambda: f"{run} goes on by itself: {mesh.run(run)}", lambda: mesh.run(run)["state"] == "COMPLETED", 120)
            whole(mesh, run)
            self.assertEqual(self.samples(mesh, run), shares)
            for node in mesh.nodes:
                self.assertEqual([line["weights"] for line in stretches(node, run)], [weights, weights])

    def test_kept_by_those_who_are_left(self):
        with slow_mesh(3) as mesh:
            run = mesh.detach(JOB | {"steps": 2000})
            mesh.wait_for_step(run, 5)
            weights = mesh[0].record(run)["weights"]
            mesh[2].kill()
            wait_until(lambda: f"two are left: {mesh.run(run)}", lambda: len(self.samples(mesh, run)) == 2 and mesh.run(run)["view"] == 2)
            self.expect_uneven(self.samples(mesh, run))
            mesh.ctl_ok("stop", run)
            mesh.wait_ended(run)
            self.assertEqual([line["weights"] for line in stretches(mesh[1], run)], [weights, weights[:2]])

    def test_a_share_that_memory_does_not_take(self):
        """The run is FAILED before its first step; an equal share would do, and so do smaller parts of the greater one."""
        with slow_mesh(2) as mesh:
            data = os.path.join(mesh.folder, "cifar10")
            write_cifar10(data, per_batch=64)
            job = JOB | {"model": "resnet-20", "data": "cifar10", "data-dir": data, "data-train": None, "data-test": None, "global-batch": 120, "steps": 1}
            plan = mesh.ctl_ok("start", mesh.job_file(job), "--dry-run").out
            megabytes = next(float(line.split()[1]) for line in plan.splitlines() if line.startswith("memory "))
            mesh.configure(0, memory_mib=round(megabytes))
            mesh.restart([0])
            mesh.ctl("start", mesh.job_file(job)).ends(5, "FAILED at step 0: node-a: ", "memory")
            mesh.start(job | {"split": "weight"})
            run = mesh.start(job | {"micro-batch": 40})
            self.assertGreater(self.samples(mesh, run)["node-a"], 65)

    def test_nothing_to_measure(self):
        """Gradients that are replayed are split equally, whatever the weights are."""
        job = {"split": "speed", "compute": "replay", "global-batch": 8, "steps": 5, "data": None, "data-train": None, "data-test": None}
        with Mesh(2, per_node={1: {"weight": 3}}) as mesh:
            self.assertEqual(self.samples(mesh, mesh.start(job)), {"node-a": 4, "node-b": 4})


if __name__ == "__main__":
    unittest.main()
