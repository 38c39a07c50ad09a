"""plan against a real mesh: what it predicts holds together, and is what a dry run says."""

import json
import unittest

from mesh import Mesh

REPLAY = {"model": "googlenet-slim", "compute": "replay", "replay-zeros": 0.68, "data": None, "data-train": None, "data-test": None, "link-mbps": 1000}


class Plan(unittest.TestCase):
    def test_it_equals_a_dry_run(self):
        with Mesh(2) as mesh:
            job = mesh.job_file(REPLAY)
            dry = mesh.ctl_ok("start", job, "--dry-run").out
            plan = json.loads(mesh.ctl_ok("plan", job, "--nodes", 2, "--json").out)
            self.assertIn(f"{plan['exchange']}, coding {plan['coding']}", dry)
            for exchange in ("direct", "sharded"):
                self.assertGreaterEqual(plan["asked"][exchange]["step_seconds"], plan["asked"][exchange]["wire_seconds"])
            mesh.ctl("plan", job, "--nodes", 0).refuses(2, "--nodes")

    def test_computing_is_timed_or_told(self):
        with Mesh(1) as mesh:
            job = mesh.job_file({"global-batch": 64})
            asked = ("plan", job, "--nodes", 8, "--link", "1Gbps", "--json")
            self.assertGreater(json.loads(mesh.ctl_ok(*asked).out)["asked"]["direct"]["compute_seconds"], 0)
            run = mesh.detach({"steps": 100000, "digest-every": 1000})
            mesh.wait_for_step(run, 1)
            mesh.ctl(*asked).refuses(1, run, "--compute")
            told = json.loads(mesh.ctl_ok(*asked, "--compute", "80ms").out)
            self.assertAlmostEqual(told["asked"]["direct"]["compute_seconds"], 0.08)
            mesh.ctl_ok("stop", run)


if __name__ == "__main__":
    unittest.main()
