"""Random deaths, a few of each kind (kills.py), and a short storm (storm.py). tests/hostile/kills, power and storm have more of the same,
from a seed."""

import collections
import unittest

from kills import Kills, settings, table
from mesh import Mesh
from storm import storm


class Random(unittest.TestCase):
    def trials(self, nodes, kinds, threads):
        with Mesh(nodes, settings(threads=threads)) as mesh:
            kills = Kills(mesh, "process", kinds, recipes=("lenet",))
            for number in range(len(kinds)):
                kills.trial(number)
            print("\n".join(table(kills.times)))

    def test_of_two(self):
        self.trials(2, ("power",), threads=1)

    def test_of_three(self):
        self.trials(3, ("training", "saving", "ending", "stopping"), threads=1)

    def test_of_four(self):
        self.trials(4, ("training", "returning"), threads=2)


class InAStorm(unittest.TestCase):
    def test_of_three(self):
        counts = collections.Counter()
        storm("process", 0, nodes=3, seconds=15, counts=counts, times=collections.defaultdict(list), without=("disk",))
        print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))


if __name__ == "__main__":
    unittest.main()
