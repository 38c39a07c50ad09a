"""plan against real meshes: what it predicts holds together and is what a dry run says, and every misuse gets one line and its
exit code."""

import json
import re
import unittest

from mesh import Mesh

REPLAY = {"model": "googlenet-biases", "compute": "replay", "replay-zeros": 0.68, "data": None, "data-train": None, "data-test": None}
ERROR, USAGE = 1, 2


class Plan(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mesh = Mesh(2).__enter__()
        cls.addClassCleanup(cls.mesh.__exit__, None, None, None)

    def plan(self, keys, *options, node=0):
        return json.loads(self.mesh.ctl_ok("plan", self.mesh.job_file(keys), "--json", *options, node=node).out)

    def test_predictions_hold_together(self):
        plan = self.plan(REPLAY, "--nodes", 4, "--link", "1Gbps")
        asked = plan["asked"]
        self.assertEqual((plan["model"], plan["compute"], asked["nodes"]), ("googlenet-biases", "replay", 4))
        for exchange in ("direct", "sharded"):
            self.assertGreaterEqual(asked[exchange]["step_seconds"], asked[exchange]["wire_seconds"])
        self.assertIn(plan["coding"], ("raw", "entropy"))
        self.assertEqual([row["nodes"] for row in plan["table"]], [1, 2, 4, 8, 16, 32, 64])
        self.assertEqual(plan["table"][2], asked)
        slower = self.plan(REPLAY, "--nodes", 4, "--link", "100Mbps")["asked"]
        self.assertGreater(slower["sharded"]["step_seconds"], asked["sharded"]["step_seconds"])
        # Without --link: as measured here, which loopback is not a gigabit.
        measured = self.plan(REPLAY, "--nodes", 4)
        self.assertIsNone(measured["line_mbps"])
        self.assertGreater(measured["payload_mbps"], 0)

    def test_training_times_steps_or_takes_what_is_told(self):
        job = {"global-batch": 64}
        answer = self.mesh.ctl_ok("plan", self.mesh.job_file(job), "--nodes", 8, "--link", "1Gbps")
        for word in ("lenet, 1256080 parameters", "bound by", "assumed:", "91 % of all codes, as measured on MNIST"):
            self.assertIn(word, answer.out)
        one = self.plan(job, "--nodes", 1, "--link", "1Gbps")["asked"]
        self.assertGreater(one["direct"]["compute_seconds"], 0)
        self.assertEqual(one["direct"]["step_seconds"], one["direct"]["compute_seconds"])
        # What is told needs no node that is free.
        run = self.mesh.detach({"steps": 100000, "digest-every": 1000})
        self.mesh.wait_for_step(run, 1)
        self.mesh.ctl("plan", self.mesh.job_file(job), "--nodes", 8, "--link", "1Gbps").refuses(ERROR, f"run {run} is on", "--compute")
        plan = self.plan(job, "--nodes", 8, "--link", "1Gbps", "--compute", "80ms")
        self.mesh.ctl_ok("stop", run)
        self.assertAlmostEqual(plan["asked"]["direct"]["compute_seconds"], 0.08)
        self.assertAlmostEqual(plan["table"][0]["direct"]["compute_seconds"], 8 * 0.08)

    def test_misuse(self):
        job = self.mesh.job_file({"global-batch": 64})
        for options, words in (
            (["--nodes", 0], ["--nodes", "1 to 127"]),
            (["--nodes", 128], ["--nodes"]),
            ([], ["--nodes N"]),
            (["--nodes", 2, "--link", "fast"], ["--link", "fast"]),
            (["--nodes", 2, "--compute", 80], ["--compute"]),
            (["--nodes", 2, "--set", "model=lenett"], ["model", "lenett"]),
            (["--nodes", 2, "--set", "model=lenet-caffe"], ["lenet-caffe", "compute=replay"]),
            (["--nodes", 65], ["global-batch = 64", "65 nodes"]),
        ):
            with self.subTest(options=options):
                self.mesh.ctl("plan", job, *options).refuses(USAGE, *words)
        self.mesh.ctl("plan", "/no/such.job", "--nodes", 2).refuses(USAGE, "/no/such.job")


def shown(text, label):
    """The cell behind a label of a table of two columns."""
    found = re.search(rf"^{label}  +(.*?) *$", text, re.M)
    assert found, f"no {label} in\n{text}"
    return found[1]


class Agree(unittest.TestCase):
    """A dry run and a plan of the same job say the same, but for the time of computing, which each measures."""

    JOBS = (
        {"global-batch": 64, "link-mbps": 1},
        {"batch-per-node": 8, "link-mbps": 100},
        REPLAY | {"link-mbps": 250},
        REPLAY | {"link-mbps": 1000, "exchange": "direct"},
        REPLAY | {"model": "lenet", "link-mbps": 9000, "replay-zeros": 0.92},
    )

    def test_dry_run_and_plan(self):
        for nodes in (2, 3):
            with Mesh(nodes) as mesh:
                for keys in self.JOBS:
                    with self.subTest(nodes=nodes, keys=keys):
                        job = mesh.job_file(keys)
                        dry = mesh.ctl_ok("start", job, "--dry-run").out
                        answer = mesh.ctl_ok("plan", job, "--nodes", nodes).out
                        plan = json.loads(mesh.ctl_ok("plan", job, "--nodes", nodes, "--json").out)
                        self.assertEqual(shown(dry, "exchange"), f"{plan['exchange']}, coding {plan['coding']}")
                        column = ("direct", "sharded").index(plan["exchange"])
                        step, sent, bound = (re.split(r"  +", shown(answer, label))[column] for label in ("step", "sent", "bound by"))
                        self.assertEqual(shown(dry, "step").split(", ")[0], step, (dry, answer))
                        self.assertEqual(shown(dry, "sent"), f"{sent} per node and step")
                        self.assertEqual(shown(dry, "bound by"), bound)


if __name__ == "__main__":
    unittest.main()
