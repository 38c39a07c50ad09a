"""tests/paper/run on two small experiments: what it writes is what its runs came to, and nothing is computed twice."""

import csv
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

from intervals import interval

HERE = pathlib.Path(__file__).resolve().parent
SMALL = ("--set", "data=synthetic", "--set", "data-train=128", "--set", "data-test=64")


def run(*arguments):
    return subprocess.run([sys.executable, HERE / "run", *map(str, arguments)], capture_output=True, text=True, timeout=600, check=False)


class Run(unittest.TestCase):
    def test_an_experiment(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out"
            asked = ("figure-3a", "--tgd", os.environ["TGD"], "--members", 1, 2, "--rows", "float32", "ternary", "--steps", 3, *SMALL, "-o", out)
            wrong = run(*asked)
            self.assertEqual(wrong.returncode, 2)
            self.assertIn("figure-3a has no 2; it has 1, 4, 16, 64", wrong.stderr)
            asked = [4 if word == 2 else word for word in asked]
            first = run(*asked, "--seeds", 1)
            self.assertEqual(first.returncode, 0, first.stderr)
            times = {path: path.stat().st_mtime_ns for path in out.glob("figure-3a/*/run.json")}
            self.assertEqual(len(times), 4)
            both = run(*asked, "--seeds", 1, 2, "--at-once", 2)
            self.assertEqual(both.returncode, 0, both.stderr)
            self.assertEqual({path: path.stat().st_mtime_ns for path in times}, times, "what was complete is kept")
            with open(out / "figure-3a.csv", newline="") as file:
                lines = list(csv.DictReader(file))
            self.assertEqual(sorted((line["row"], line["members"], line["seed"]) for line in lines),
                             sorted((row, n, seed) for row in ("float32", "ternary") for n in ("1", "4") for seed in ("1", "2")))
            self.assertEqual(len({line["digest"] for line in lines}), 8)
            accuracy = {(line["row"], line["members"], line["seed"]): float(line["accuracy"]) for line in lines}
            lost = [100 * (accuracy["ternary", "4", seed] - accuracy["float32", "4", seed]) for seed in ("1", "2")]
            mean, half = interval(lost)
            self.assertIn(f"| ternary - float32 | 4 | 2 | {mean:.2f} ± {half:.2f} | - |", both.stdout)
            names = xml.etree.ElementTree.parse(out / "figure-3a.svg").getroot().itertext()
            self.assertTrue({"float32", "ternary"} <= set(names))

    def test_what_fails_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            failed = run("table-1", "--tgd", os.environ["TGD"], "--members", 2, "--rows", "float32", "--seeds", 1, "--steps", 1,
                         "--data-dir", folder, "-o", pathlib.Path(folder) / "out")
            self.assertEqual(failed.returncode, 1)
            self.assertIn("float32-2-1-1 ended with ", failed.stderr)
            self.assertIn("data_batch_1.bin", failed.stderr)


class Intervals(unittest.TestCase):
    def test_by_hand(self):
        self.assertEqual(interval([5.0]), (5.0, None))
        mean, half = interval([1.0, 2.0, 3.0])  # deviation 1, t of two degrees of freedom
        self.assertEqual(mean, 2)
        self.assertAlmostEqual(half, 4.303 / 3**0.5)


if __name__ == "__main__":
    unittest.main()
