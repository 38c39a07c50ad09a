"""Replicas agree bit for bit: whatever the exchange, the kernels and the split of the batch, one job is one digest."""

import os
import unittest

from files import write_cifar10
from mesh import Mesh

JOB = {"steps": 12, "global-batch": 16, "weight-decay": 0.0005, "evaluate-every": 6}


def has_avx2():
    with open("/proc/cpuinfo") as file:
        return any(line.startswith("flags") and " avx2 " in line + " " for line in file)


class Digests(unittest.TestCase):
    def digest(self, mesh, job, node=0):
        """The digest that all members of a run of this job share."""
        run = mesh.run(mesh.start(job, node=node), node=node)
        digests = {member["node"]: member["digest"] for member in run["members"]}
        self.assertEqual(len(digests), len(mesh), digests)
        self.assertEqual(len(set(digests.values())), 1, f"run {run['id']}: {digests}")
        return run["digest"]

    def kernels_of(self, mesh, node):
        mesh[node].end()
        text = mesh[node].log_text()
        return text.split("event=node-ready", 1)[1].split("kernels=", 1)[1].split()[0]


class OneJob(Digests):
    def test_exchanges_and_kernels(self):
        with Mesh(4) as mesh:
            direct = self.digest(mesh, JOB | {"exchange": "direct"})
            self.assertEqual(self.digest(mesh, JOB | {"exchange": "sharded"}), direct)
            # Small buckets and chunks: many frames, other owners, several words of a chunk cut off.
            small = {"exchange": "sharded", "bucket-parameters": 50000, "chunk-parameters": 65536}
            self.assertEqual(self.digest(mesh, JOB | small, node=3), direct)
            for coding in ("raw", "entropy"):
                self.assertEqual(self.digest(mesh, JOB | {"coding": coding}), direct, coding)
            self.assertNotEqual(self.digest(mesh, JOB | {"seed": 2}), direct)
        forced = ["scalar"]
        if has_avx2():
            forced.append("avx2")
        for kernels in forced:
            with Mesh(4, per_node={1: {"kernels": kernels}}) as mesh:
                self.assertEqual(self.digest(mesh, JOB), direct, f"node-b with {kernels} kernels")
                self.assertEqual(self.kernels_of(mesh, 1), kernels)
        if not has_avx2():
            self.skipTest("this CPU has no AVX2: a member forced to it was left out")

    def test_floats_agree_between_exchanges(self):
        with Mesh(3) as mesh:
            for floats in ({"gradients": "float32"}, {"gradients": "float16"}, {"last-layer": "float16"}):
                job = JOB | floats | {"steps": 6}
                direct = self.digest(mesh, job | {"exchange": "direct"})
                self.assertEqual(direct, self.digest(mesh, job | {"exchange": "sharded"}), floats)

    def test_own_scalers(self):
        with Mesh(3) as mesh:
            self.digest(mesh, JOB | {"scaler-sharing": "none"})


class Uneven(Digests):
    def test_one_to_three_members(self):
        """145 samples, batches of 50: neither divides the other, and the third step wraps into the next epoch."""
        job = {"data-train": 145, "data-test": 31, "global-batch": 50, "steps": 7}
        for count in (1, 2, 3):
            with Mesh(count) as mesh:
                first = self.digest(mesh, job)
                if count > 1:
                    other = "sharded" if count == 2 else "direct"  # not what auto takes
                    self.assertEqual(self.digest(mesh, job | {"exchange": other}), first, f"N = {count}")

    def test_as_many_members_as_samples(self):
        with Mesh(3) as mesh:
            self.digest(mesh, {"global-batch": 3, "steps": 5})



class Weights(Digests):
    def test_three_nodes(self):
        """A run of uneven nodes is one run: one digest, whatever the exchange, and everybody says who computes what."""
        job = JOB | {"global-batch": 20, "data-test": 31}
        with Mesh(3, per_node={1: {"weight": 6}, 2: {"weight": 3}}) as mesh:
            digest = self.digest(mesh, job | {"exchange": "sharded"})
            self.assertEqual(self.digest(mesh, job | {"exchange": "direct"}, node=2), digest)
            run = mesh.status()["runs"][0]
            self.assertEqual({member["node"]: member["samples"] for member in run["members"]}, {"node-a": 2, "node-b": 12, "node-c": 6})
            record = mesh[0].record(run["id"])
            self.assertEqual((record["weights"], record["own"]["samples"]), ([1, 6, 3], 2))
            self.assertEqual(mesh[1].log_text().count('event=batch-split'), 2)
            split = "20, split by weight: node-a 2, node-b 12, node-c 6"
            self.assertIn(split, mesh.ctl_ok("start", mesh.job_file(job), "--dry-run", node=1).out)
            self.assertIn("20 samples a step, 12 on a node", mesh.ctl_ok("plan", mesh.job_file(job), "--nodes", 3, "--link", "1Gbps", node=1).out)
            mesh.ctl("start", mesh.job_file(job | {"global-batch": 2})).ends(2, "less than the 3 members")

            # Equal weights are no weights.
            for index in range(3):
                mesh.configure(index, weight=5)
            mesh.restart()
            five = self.digest(mesh, job)
            for index in range(3):
                mesh.configure(index, weight=None)
            mesh.restart()
            self.assertEqual(self.digest(mesh, job), five)
            self.assertNotEqual(five, digest, "another split is another sum of floats")
            self.assertEqual(mesh[1].log_text().count('event=batch-split'), 2)


class Cifarnet(Digests):
    def test_adam_and_augmentation(self):
        with Mesh(2) as mesh:
            data = os.path.join(mesh.folder, "cifar")
            write_cifar10(data)
            job = {
                "model": "cifarnet", "data": "cifar10", "data-dir": data, "data-train": None, "data-test": None,
                "optimizer": "adam", "learning-rate": 0.0002, "weight-decay": 0.004, "global-batch": 9, "steps": 4,
            }  # fmt: skip
            first = self.digest(mesh, job)
            self.assertEqual(self.digest(mesh, job | {"exchange": "sharded"}), first)


if __name__ == "__main__":
    unittest.main()
