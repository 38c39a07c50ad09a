"""split = speed: the members' shares of a batch follow how fast each computes. (That they stay what they were in a run that goes
on: Resume, TrainingFaults; that a share may need more memory than there is: Preparation.)"""

import unittest

from mesh import Mesh
from resuming import whole
from test_digests import has_avx2

JOB = {"split": "speed", "global-batch": 64, "steps": 20, "data-test": 31, "evaluate-every": 10}
SLOW = {"ONEDNN_MAX_CPU_ISA": "SSE41"}  # a third of the speed on a processor with AVX2


@unittest.skipUnless(has_avx2(), "no node can be made slower: this processor has no AVX2")
class Speed(unittest.TestCase):
    def samples(self, mesh, run, node=0):
        return {member["node"]: member["samples"] for member in mesh.run(run, node)["members"]}

    def start_uneven(self, mesh):
        """A run in whose measurement node-a was the faster one, as it is unless other programs held it up just then."""
        for _ in range(5):
            run = mesh.start(JOB, node=1)
            whole(mesh, run)
            shares = self.samples(mesh, run)
            self.assertEqual(sum(shares.values()), 64, shares)
            self.assertGreater(shares["node-b"], 0, shares)
            if shares["node-a"] > shares["node-b"] + 8:
                return run, shares
        self.fail(f"the weights, which say the opposite, or nothing, decide the shares: {shares}")

    def test_two_uneven_nodes(self):
        mesh = Mesh(2, per_node={1: {"weight": 3}})
        mesh[1].environment = dict(SLOW)
        with mesh:
            plan = mesh.ctl_ok("start", mesh.job_file(JOB), "--dry-run").out
            self.assertIn("64, split by weight: node-a 16, node-b 48", plan)
            self.assertIn("split = speed", plan)
            run, shares = self.start_uneven(mesh)
            self.assertEqual(self.samples(mesh, run, node=1), shares)
            a, b = (node.record(run) for node in mesh.nodes)
            self.assertEqual(a["weights"], b["weights"])
            self.assertEqual(max(a["weights"]), 1000)
            self.assertEqual((a["own"]["samples"], b["own"]["samples"]), (shares["node-a"], shares["node-b"]))
            for node in mesh.nodes:
                self.assertIn(f"node-a {shares['node-a']}, node-b {shares['node-b']}", node.log_text().rsplit("event=batch-split", 1)[1].splitlines()[0])
            self.assertIn(f"node-a {shares['node-a']}, node-b {shares['node-b']}", mesh.ctl_ok("status", run).out)


if __name__ == "__main__":
    unittest.main()
