"""tests/paper on small experiments: what is written is what the runs came to, and nothing is computed twice."""

import csv
import io
import math
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


def run(*arguments, command="run"):
    return subprocess.run([sys.executable, HERE / command, *map(str, arguments)], capture_output=True, text=True, timeout=600, check=False)


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
            one = ("figure-3a", "--tgd", os.environ["TGD"], "--members", 1, "--rows", "ternary", "float32", "--steps", 3, *SMALL, "-o", out, "--seeds", 1)
            lines_of = lambda: [line.get("stroke") for line in xml.etree.ElementTree.parse(out / "figure-3a.svg").getroot() if line.tag.endswith("polyline")]
            self.assertEqual(run(*one).returncode, 0)
            self.assertEqual(lines_of(), 3 * lines_of()[:2], "rows in another order: each has its colour in all panels")
            self.assertEqual({path: path.stat().st_mtime_ns for path in times}, times, "what was complete is kept")
            other = run(*one, "--set", "clip-sigma=0")
            self.assertEqual(other.returncode, 0, other.stderr)
            with open(out / "figure-3a.csv", newline="") as file:
                unclipped = {line["row"]: line["digest"] for line in csv.DictReader(file)}
            self.assertNotIn(unclipped["ternary"], {line["digest"] for line in lines}, "other settings are another run")
            self.assertIn("give --steps N", run(*one, "--set", "steps=5").stderr)

    def test_failures_are_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            failed = run("table-1", "--tgd", os.environ["TGD"], "--members", 2, "--rows", "float32", "--seeds", 1, "--steps", 1,
                         "--data-dir", folder, "-o", pathlib.Path(folder) / "out")
            self.assertEqual(failed.returncode, 1)
            self.assertIn("float32-2-1-1 ended with ", failed.stderr)
            self.assertIn("data_batch_1.bin", failed.stderr)


class Quadratic(unittest.TestCase):
    PROGRAM = os.environ["TGD_PAPER_QUADRATIC"]
    PARTS = ((512, 1, 1), (256, 2, 2), (128, 4, 4))  # elements, curvature, deviation

    def expected(self, members, noise=1):
        """The expected squared error by t + b, from 100 to 1000."""
        errors = [sum(((2 * i + 1) / n - 1) ** 2 for i in range(n)) for n, _, _ in self.PARTS]
        found = {}
        for place in range(100, 1001):
            found[place] = sum(errors)
            errors = [(1 - 4 / place * curvature) ** 2 * error + (4 / place * noise * deviation) ** 2 * n / members
                      for error, (n, curvature, deviation) in zip(errors, self.PARTS)]
        return found

    def errors(self, members, seed, noise):
        """rule -> t + b -> squared error."""
        text = subprocess.run([self.PROGRAM, str(members), str(seed), "1", noise], capture_output=True, text=True, check=True).stdout
        found = {}
        for row in csv.DictReader(io.StringIO(text)):
            found.setdefault(row["rule"], {})[int(row["t+b"])] = float(row["squared error"])
        return found

    def test_without_noise_it_is_the_product_of_the_steps(self):
        found, expected = self.errors(4, 1, "none"), self.expected(4, noise=0)
        self.assertEqual(len(found["float32"]), 11)
        for place, error in found["float32"].items():
            self.assertAlmostEqual(error / expected[place], 1, places=4)
            self.assertAlmostEqual(found["expected"][place] / expected[place], 1, places=7)

    def test_floats_come_to_what_is_expected(self):
        for noise in ("normal", "skewed"):
            found, expected = self.errors(4, 1, noise), self.expected(4)
            self.assertAlmostEqual(found["expected"][1000] / expected[1000], 1, places=7)
            self.assertLess(abs(found["float32"][1000] / expected[1000] - 1), 0.25, noise)  # some 5 % of deviation
            self.assertGreater(found["ternary"][1000] / expected[1000], 1.5, noise)

    def test_the_table(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run(self.PROGRAM, "--members", 4, "--seeds", 2, "--decades", 1, "-o", folder, command="quadratic")
            self.assertEqual(done.returncode, 0, done.stderr)
            expected = self.expected(4)
            points = [(math.log(place), math.log(expected[place])) for place in (round(100 * 10 ** (i / 10)) for i in range(11))]
            middle = sum(x for x, _ in points) / len(points)
            slope = sum((x - middle) * y for x, y in points) / sum((x - middle) ** 2 for x, _ in points)
            self.assertIn(f"| normal | float32, expected | 4 | {slope:.2f} | {expected[1000]:.4g} | |", done.stdout)
            ends = [{rule: errors[1000] for rule, errors in self.errors(4, seed, "skewed").items()} for seed in (1, 2)]
            mean, half = interval([end["ternary clipped"] / end["float32"] for end in ends])
            self.assertIn(f"| {mean:.2f} ± {half:.2f} |", done.stdout)
            self.assertTrue({"float32", "ternary clipped"} <= set(xml.etree.ElementTree.parse(f"{folder}/quadratic.svg").getroot().itertext()))


class Figure2(unittest.TestCase):
    def test_a_small_network(self):
        with tempfile.TemporaryDirectory() as folder:
            asked = ("--tgd", os.environ["TGD"], "--job", "lenet-synthetic", "--layers", "conv1", "fc1", "--steps", 6, "--shown", 3, "--set", "data-train=64",
                     "--set", "data-test=64", "--set", "ema=0", "-o", folder)
            first = run(*asked, command="figure-2")
            self.assertEqual(first.returncode, 0, first.stderr)
            with open(f"{folder}/figure-2.csv", newline="") as file:
                lines = list(csv.DictReader(file))
            self.assertEqual([(line["step"], line["layer"]) for line in lines], [(step, layer) for step in ("2", "4", "6") for layer in ("conv1", "fc1", "all")])
            for line in lines:
                self.assertTrue(0 < float(line["length after over before"]) < 1 and 0 < float(line["zeros, %"]) < 100, line)
                self.assertIn("| " + " | ".join(line.values()) + " |", first.stdout)
            words = list(xml.etree.ElementTree.parse(f"{folder}/figure-2.svg").getroot().itertext())
            self.assertEqual(words.count("6"), 8, "the last step in each panel")
            times = [path.stat().st_mtime_ns for path in pathlib.Path(folder).glob("*/run.json")]
            again = run(*asked, command="figure-2")
            self.assertEqual((again.returncode, again.stdout), (0, first.stdout), again.stderr)
            self.assertEqual([path.stat().st_mtime_ns for path in pathlib.Path(folder).glob("*/run.json")], times, "what was complete is kept")
            other = run(*asked, "--layers", "conv1", "conv9", command="figure-2")
            self.assertEqual(other.returncode, 1)
            self.assertIn("--layers: conv9 sent no codes of a shared scaler in ", other.stderr)
            self.assertIn("these did: conv1, conv2, fc1, fc2", other.stderr)


class Intervals(unittest.TestCase):
    def test_by_hand(self):
        self.assertEqual(interval([5.0]), (5.0, None))
        mean, half = interval([1.0, 2.0, 3.0])  # deviation 1, t of two degrees of freedom
        self.assertEqual(mean, 2)
        self.assertAlmostEqual(half, 4.303 / 3**0.5)


if __name__ == "__main__":
    unittest.main()
