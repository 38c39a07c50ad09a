"""TernGrad as a plain rule trains to what tgd's members train to: the same loss of the test set."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

JOB = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "jobs" / "lenet-mnist.job"
KEYS = ("data=synthetic", "data-train=300", "data-test=100", "steps=6", "seed=3", "threads=1")


def run(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


def keys(*more):
    return [word for key in (*KEYS, *more) for word in ("--set", key)]


def plain(rule, *more):
    return run(os.environ["TGD_PLAIN_TRAIN"], "--rule", rule, "--members", "3", "--job", JOB, *keys(*more))


class Train(unittest.TestCase):
    def compare(self, rule, *more):
        with tempfile.TemporaryDirectory() as folder:
            done = run(os.environ["TGD"], "simulate", JOB, "--members", "3", *keys(*more), "-o", f"{folder}/run")
            self.assertEqual(done.returncode, 0, done.stderr)
            theirs = json.loads(pathlib.Path(folder, "run", "run.json").read_text())["evaluation"]
        done = plain(rule)
        self.assertEqual(done.returncode, 0, done.stderr)
        ours = json.loads(done.stdout)
        self.assertEqual((ours["accuracy"], ours["top_5"]), (theirs["accuracy"], theirs["accuracy_5"]))
        self.assertAlmostEqual(ours["test_loss"], theirs["loss"], delta=1e-13)  # the samples' losses are added in another order

    def test_terngrad(self):
        self.compare("terngrad")

    def test_without_clipping(self):
        self.compare("terngrad-noclip", "clip-sigma=0")

    def test_float16(self):
        self.compare("float16", "gradients=float16")

    def test_epochs_and_the_nodes_batch(self):
        done = plain("float32", "epochs=2", "global-batch=64", "batch-per-node=10")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["steps"], 20)  # 300 samples, 30 a step

    def test_what_is_refused(self):
        for done, words in (
            (plain("terngrad", "freeze=conv1"), "freeze: tgd_plain_train does not follow it; leave it out"),
            (plain("terngrad", "patience=3", "evaluate-every=1"), "patience: "),
            (plain("ternary"), 'there is no rule "ternary"'),
            (plain("terngrad", "model=resnet-20"), "batch normalizations"),
            (plain("terngrad", "data=mnist", "data-train=0", "data-test=0", "data-dir=/nowhere"), "/nowhere"),
        ):
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
