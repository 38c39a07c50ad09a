"""How a run learns: a batch in parts."""

import unittest

from files import read_metrics
from mesh import Mesh

# Floats, so that losses can be compared over some steps.
JOB = {"gradients": "float32", "steps": 6, "global-batch": 16, "ema": 0}


class Learning(unittest.TestCase):
    def end(self, mesh, job):
        """The run as it ended, and its metrics; all members hold one state."""
        run = mesh.start(job)
        mesh.wait_ended(run)
        ended = mesh.run(run)
        self.assertEqual(ended["state"], "COMPLETED", ended)
        digests = {member["node"]: member["digest"] for member in ended["members"]}
        self.assertEqual(len(set(digests.values())), 1, f"run {run}: {digests}")
        return ended, read_metrics(mesh[0].run_file(run, "metrics.jsonl"))

    def test_a_batch_in_parts(self):
        with Mesh(2) as mesh:
            whole, losses = self.end(mesh, JOB)
            parts, losses_of_parts = self.end(mesh, JOB | {"micro-batch": 2})
            for one, other in zip(losses, losses_of_parts):
                self.assertAlmostEqual(one["loss"], other["loss"], delta=1e-4 * one["loss"])
            self.assertNotEqual(whole["digest"], parts["digest"], "sums round in another order: were there parts?")
            same, _ = self.end(mesh, JOB | {"micro-batch": 8})
            self.assertEqual(same["digest"], whole["digest"], "the whole of a member's part at once")

            answer = mesh.ctl("start", mesh.job_file(JOB | {"global-batch": 18, "micro-batch": 4}))
            answer.refuses(2, "node-", "micro-batch = 4 does not divide this node's 9 samples of a step")
            answer = mesh.ctl("start", mesh.job_file({"compute": "replay", "micro-batch": 4}))
            answer.refuses(2, "micro-batch = 4 needs compute = train")


if __name__ == "__main__":
    unittest.main()
