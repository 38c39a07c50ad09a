"""One parameter bit that flips in one process is found at the next comparison, and named."""

import unittest

from mesh import Mesh


class Flip(unittest.TestCase):
    STEP, EVERY, STEPS = 7, 5, 40

    def check_failed(self, mesh, run):
        for index, node in enumerate(mesh.nodes):
            shown = mesh.run(run, node=index)
            where = f"{node.name} (log {node.log}) on run {run}: {shown}"
            self.assertEqual(shown["state"], "FAILED", where)
            self.assertIn("node-c", shown["reason"], where)
            self.assertIn("conv1.weight", shown["reason"], where)
            for other in ("node-a", "node-b", "node-d"):
                self.assertNotIn(f"{other} has", shown["reason"], where)
            self.assertTrue(self.STEP < shown["step"] <= self.STEP + self.EVERY, where)

    def test_named_within_digest_every_steps(self):
        with Mesh(4, per_node={2: {"fault": f"flip@forward:{self.STEP}"}}) as mesh:
            answer = mesh.ctl("start", mesh.job_file({"steps": self.STEPS, "digest-every": self.EVERY}))
            self.check_failed(mesh, answer.ends(5, "node-c").out.strip())

    def test_named_at_the_end(self):
        """After the last comparison of a run there is still that of the final reports."""
        with Mesh(3, per_node={1: {"fault": "flip@forward:7"}}) as mesh:
            mesh.ctl("start", mesh.job_file({"steps": 9, "digest-every": 100})).ends(5, "node-b", "conv1.weight")


if __name__ == "__main__":
    unittest.main()
