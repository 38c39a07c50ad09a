"""Replicas agree bit for bit: whatever the exchange, the kernels and the split of the batch, one job is one digest. (Every number
of members, format, coding and optimizer beside the plain reference: TrainingScenarios, SimulatedViews.)"""

import unittest

from mesh import Mesh

JOB = {"steps": 12, "global-batch": 20, "weight-decay": 0.0005, "evaluate-every": 6, "data-test": 31}


def has_avx2():
    with open("/proc/cpuinfo") as file:
        return any(line.startswith("flags") and " avx2 " in line + " " for line in file)


class OneJob(unittest.TestCase):
    def digest(self, mesh, job, node=0):
        """The digest that all members of a run of this job share."""
        run = mesh.run(mesh.start(job, node=node), node=node)
        digests = {member["node"]: member["digest"] for member in run["members"]}
        self.assertEqual(len(digests), len(mesh), digests)
        self.assertEqual(len(set(digests.values())), 1, f"run {run['id']}: {digests}")
        return run["digest"]

    def test_exchanges_kernels_and_weights(self):
        """Three nodes of other weights, each with kernels of its own; small buckets and chunks are many frames and other owners."""
        kernels = {1: "scalar"} | ({2: "avx2"} if has_avx2() else {})
        weights = {0: {"weight": 1}, 1: {"weight": 6}, 2: {"weight": 3}}
        with Mesh(3, per_node={index: keys | ({"kernels": kernels[index]} if index in kernels else {}) for index, keys in weights.items()}) as mesh:
            direct = self.digest(mesh, JOB | {"exchange": "direct", "coding": "entropy"})
            small = {"exchange": "sharded", "coding": "raw", "bucket-parameters": 50000, "chunk-parameters": 65536}
            self.assertEqual(self.digest(mesh, JOB | small, node=2), direct)
            run = mesh.status()["runs"][0]
            self.assertEqual({member["node"]: member["samples"] for member in run["members"]}, {"node-a": 2, "node-b": 12, "node-c": 6})
            record = mesh[0].record(run["id"])
            self.assertEqual((record["weights"], record["own"]["samples"]), ([1, 6, 3], 2))
            self.assertEqual(mesh[1].log_text().count("event=batch-split"), 2)
            self.assertIn("20, split by weight: node-a 2, node-b 12, node-c 6", mesh.ctl_ok("start", mesh.job_file(JOB), "--dry-run", node=1).out)
            for index, variant in kernels.items():
                self.assertIn(f" kernels={variant} ", mesh[index].log_text().rsplit("event=node-ready", 1)[1].splitlines()[0] + " ")


if __name__ == "__main__":
    unittest.main()
