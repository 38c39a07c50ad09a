"""float32 gradients: several members learn what one learns, up to the order of float additions."""

import math
import os
import unittest

from files import read_metrics, read_safetensors
from mesh import Mesh

LOSS_TOLERANCE = 1e-5  # relative, over the first five steps
# Relative L2 difference of each tensor after ten steps: the rounding of sums (2^-24 each) grows with the steps, but stays
# far below the size of an update.
PARAMETER_TOLERANCE = 1e-5


class Float32(unittest.TestCase):
    def train(self, count, per_node=None):
        with Mesh(count, per_node=per_node) as mesh:
            run = mesh.start({"gradients": "float32", "global-batch": 30, "steps": 10, "optimizer": "momentum"})
            folder = mesh.fetch(run)
            metrics = read_metrics(os.path.join(folder, "metrics.jsonl"))
            return [row["loss"] for row in metrics], read_safetensors(os.path.join(folder, "model-raw.safetensors"))[0]

    def test_one_and_four_members(self):
        self.compare(*self.train(1), *self.train(4))

    def test_one_and_three_of_other_weights(self):
        """21, 3 and 6 of the 30 samples of a step."""
        self.compare(*self.train(1), *self.train(3, per_node={0: {"weight": 7}, 2: {"weight": 2}}))

    def compare(self, losses, tensors, losses4, tensors4):
        for step, (one, four) in enumerate(zip(losses[:5], losses4[:5])):
            print(f"step {step + 1}: loss {one:.9f} with one member, {four:.9f} with more, relative difference {abs(one - four) / one:.1e}")
            self.assertLess(abs(one - four), LOSS_TOLERANCE * one, f"step {step + 1}")
        self.assertNotAlmostEqual(losses[0], losses[4], places=4, msg="nothing was learnt, nothing was compared")
        for name, tensor in tensors.items():
            error = math.dist(tensor.values, tensors4[name].values)
            size = math.hypot(*tensor.values)
            print(f"{name}: relative L2 difference {error / size:.1e}")
            self.assertLess(error, PARAMETER_TOLERANCE * size, name)


if __name__ == "__main__":
    unittest.main()
