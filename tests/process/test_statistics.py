"""Batch normalization's running statistics are part of the state: all members hold the same ones, evaluate with them and save them."""

import math
import os

import unittest

from files import read_safetensors
from mesh import Mesh

JOB = {
    "model": "resnet-20", "data": "fractals", "image-size": 32, "data-classes": 10, "data-train": 60, "data-test": 20,
    "optimizer": "momentum", "global-batch": 12, "steps": 4, "evaluate-every": 2, "digest-every": 1,
}  # fmt: skip
NORMALIZATIONS = 21
# Relative L2 difference of means over 12 x 32 x 32 float32 values that are added in other orders: no more than that many
# roundings of 2^-24. Most of the values are a fractal's background, so they go the same way.
MEAN_TOLERANCE = 12 * 32 * 32 * 2**-24


class Statistics(unittest.TestCase):
    def test_uneven_members_hold_the_same(self):
        nodes = {0: {"threads": 2}, 1: {"weight": 3}, 2: {"weight": 2, "kernels": "scalar"}}
        with Mesh(3, per_node=nodes) as mesh:
            digests = set()
            for exchange, coding in (("direct", "raw"), ("sharded", "entropy")):
                name = mesh.start(JOB | {"exchange": exchange, "coding": coding})
                run = mesh.run(name)
                digests |= {member["digest"] for member in run["members"]}
                self.assertEqual(run["evaluation"]["step"], 4)
            self.assertEqual(len(digests), 1, digests)
            self.assertEqual([member["samples"] for member in run["members"]], [2, 6, 4])
            mesh.wait_ended(name)
            folders = [mesh.fetch(name)] + [os.path.dirname(node.run_file(name, "run.json")) for node in mesh.nodes]
            files = [self.statistics(folder, file) for folder in folders for file in ("model", "model-raw")]
            files += [self.statistics(folder, "state") for folder in folders[1:]]
            self.assertEqual(len(files[0]), 2 * NORMALIZATIONS)
            for other in files[1:]:
                self.assertEqual(other, files[0])
            for name, values in files[0].items():
                self.assertNotIn(set(values), ({0.0}, {1.0}), f"{name} has not moved")

    def test_means_are_those_of_the_whole_batch(self):
        """Before the first update all members normalize what one would; a mean of parts, weighted by their sizes, is the whole's."""
        job = JOB | {"steps": 1, "gradients": "float32", "evaluate-every": 0}
        whole, part = self.mean(1, job), self.mean(1, job | {"global-batch": 2})
        print(f"bn1.running_mean of two samples alone: relative L2 difference {self.error(part, whole):.1e}")
        self.assertGreater(self.error(part, whole), 10 * MEAN_TOLERANCE, "the parts are alike: nothing would be compared")
        for weights in ({}, {1: {"weight": 5}}):  # 6 and 6 samples, 2 and 10
            error = self.error(self.mean(2, job, weights), whole)
            print(f"bn1.running_mean of two members: relative L2 difference {error:.1e}")
            self.assertLess(error, MEAN_TOLERANCE)

    def mean(self, count, job, weights=None):
        with Mesh(count, per_node=weights) as mesh:
            return self.statistics(mesh.fetch(mesh.start(job)), "model")["bn1.running_mean"]

    def error(self, values, expected):
        return math.dist(values, expected) / math.hypot(*expected)

    def statistics(self, folder, file):
        tensors, _ = read_safetensors(os.path.join(folder, file + ".safetensors"))
        return {name: list(tensor.values) for name, tensor in tensors.items() if ".running_" in name}


if __name__ == "__main__":
    unittest.main()
