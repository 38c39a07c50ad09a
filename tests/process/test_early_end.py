"""A run that is complete before its last step: target-accuracy and patience."""

import unittest

from mesh import Mesh
from patience import wait_until
from test_recompute import recompute


class EarlyEnd(unittest.TestCase):
    def test_target_and_patience(self):
        with Mesh(3) as mesh:
            job = {"steps": 5000, "evaluate-every": 20, "target-accuracy": 0.9, "data-train": None, "data-test": None, "learning-rate": 0.02}
            run = mesh.start(job)
            shown = mesh.run(run)
            self.assertEqual(shown["state"], "COMPLETED")
            self.assertRegex(shown["reason"], r"^the accuracy of 9\d\.\d\d % has reached target-accuracy$")
            self.assertLess(shown["step"], 5000)
            self.assertEqual((shown["step"] % 20, shown["best_step"]), (0, shown["step"]))
            self.assertEqual(len({member["digest"] for member in shown["members"]}), 1)
            folder = mesh.fetch(run)
            code, out, _ = recompute(folder)
            self.assertEqual(code, 0, out)
            # It goes on where that is no goal any more, to the bits of a run that never had one.
            more = shown["step"] + 10
            mesh.ctl_ok("resume", run, "--set", "target-accuracy=0", "--set", f"steps={more}")
            plain = mesh.start(job | {"target-accuracy": 0, "steps": more})
            self.assertEqual(mesh.run(run)["digest"], mesh.run(plain)["digest"])

            # Nothing is learned at such a rate.
            run = mesh.detach({"steps": 5000, "evaluate-every": 10, "patience": 3, "learning-rate": 1e-12, "weight-decay": 0})
            mesh.wait_for_step(run, 11)
            mesh[2].kill()
            wait_until(lambda: f"{run} has ended: {mesh.run(run)}", lambda: mesh.run(run)["state"] == "COMPLETED")
            shown = mesh.run(run)
            self.assertEqual((shown["step"], shown["best_step"]), (40, 10))
            self.assertRegex(shown["reason"], r"^no better accuracy than the \d+\.\d\d % of step 10 in 3 evaluations \(patience\)")
