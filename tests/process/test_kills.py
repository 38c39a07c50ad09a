"""Random deaths, a few of each kind (kills.py). tests/hostile/kills and tests/hostile/power have more of the same, from a seed."""

import unittest

from kills import Kills, settings, table
from mesh import Mesh


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


if __name__ == "__main__":
    unittest.main()
