"""What status says is sent per step is what the interfaces count."""

import time
import unittest

from mesh import Mesh
from network import Network, NetworkUnavailable

TOLERANCE = 0.03
STEPS = 60  # status shows the mean of the last 64


class Traffic(unittest.TestCase):
    def setUp(self):
        try:
            self.network = Network(4).__enter__()
        except NetworkUnavailable as reason:
            self.skipTest(str(reason))
        self.addCleanup(self.network.__exit__)

    def counters(self):
        return [self.network.sent_bytes(i) for i in range(4)]

    def measure(self, mesh, gradients):
        """Compares for each member. What is left are headers of TCP and below, acknowledgements, beats and the start."""
        before, begun = self.counters(), time.monotonic()
        run = mesh.start({"gradients": gradients, "steps": STEPS, "link-mbps": 1000})  # told: nothing is sent to measure it
        after, seconds = self.counters(), time.monotonic() - begun
        for i, node in enumerate(mesh.nodes):
            said = mesh.run(run, node=i)["sent_bytes_per_step"] * STEPS
            counted = after[i] - before[i]
            print(f"{gradients}: {node.name} says {said / STEPS:.0f} B per step, {said:.0f} in {STEPS} steps; its interface "
                  f"counted {counted} in {seconds:.1f} s: {100 * (counted / said - 1):+.2f} %")  # fmt: skip
        for i, node in enumerate(mesh.nodes):
            said = mesh.run(run, node=i)["sent_bytes_per_step"] * STEPS
            self.assertLess(abs((after[i] - before[i]) / said - 1), TOLERANCE, f"{gradients}, {node.name}, run {run}, log {node.log}")

    def test_ternary_and_float32(self):
        settings = {"insecure": "true"}
        with Mesh(4, settings, hosts=self.network.addresses, prefixes=self.network.prefixes) as mesh:
            self.measure(mesh, "ternary")
            self.measure(mesh, "float32")


if __name__ == "__main__":
    unittest.main()
