"""A run whose members are all in one process comes to the bits that as many nodes come to, also when it is interrupted."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from mesh import Mesh
from node import OF_TESTS
from patience import PATIENCE, communicate, wait_until
from test_recompute import change_record, recompute

TGD = os.environ["TGD"]
OWN = {name: value for name, value in os.environ.items() if name not in OF_TESTS}


def command(*arguments):
    return [TGD, "simulate", *map(str, arguments)]


def simulate(*arguments):
    """Its exit code, stdout and stderr."""
    with subprocess.Popen(command(*arguments), cwd="/", env=OWN, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        out, err = communicate(process, PATIENCE)
    return process.returncode, out, err


def record_of(folder):
    with open(os.path.join(folder, "run.json")) as file:
        return json.load(file)


def losses_in(path):
    with open(path) as file:
        return [json.loads(line)["loss"] for line in file]


def gradients_in(folder):
    with open(os.path.join(folder, "gradients.jsonl")) as file:
        return [json.loads(line) for line in file]


class AsNodes(unittest.TestCase):
    """(Other formats, rules and numbers of members, on a tiny model beside the plain reference: SimulatedViews, TrainingScenarios.)"""

    def equal(self, weights, job, ways=(("one", 3), ("all", 1))):
        """Digests, losses and accuracy of nodes, and of a simulation; returns the digest."""
        with Mesh(len(weights), per_node={i: {"weight": weight} for i, weight in enumerate(weights)}) as mesh:
            job = {"steps": 12, "global-batch": 24, "evaluate-every": 5} | job
            run = mesh.start(job)
            nodes = mesh.run(run)
            for replicas, threads in ways:
                folder = os.path.join(mesh.folder, f"{replicas}-{threads}")
                members = ",".join(map(str, weights))
                code, out, err = simulate(mesh.job_file(job), "--weights", members, "--replicas", replicas, "--threads", threads, "-o", folder)
                self.assertEqual((code, err), (0, ""), out)
                self.assertIn(f"COMPLETED at step {nodes['step']}: digest {nodes['digest']}", out)
                self.assertEqual(record_of(folder)["evaluation"], nodes["evaluation"])
                self.assertEqual(losses_in(os.path.join(folder, "metrics.jsonl")), losses_in(mesh[0].run_file(run, "metrics.jsonl")))
                with open(os.path.join(folder, "model.safetensors"), "rb") as one, open(mesh[0].run_file(run, "model.safetensors"), "rb") as other:
                    self.assertEqual(one.read()[-1000:], other.read()[-1000:])
            # What reads a fetched folder reads this one.
            mesh.ctl_ok("report", folder, "-o", os.path.join(mesh.folder, "page.html"))
            self.assertEqual(recompute(folder, "--threads", 1)[0], 0)
            return nodes["digest"]

    def test_three_uneven_ones(self):
        self.equal([1, 3, 2], {"optimizer": "adam", "learning-rate": 0.001, "keep": "best", "evaluate-every": 2, "weight-decay": 0.001})

    def test_batch_norm_and_dropout(self):
        pictures = {"data": "fractals", "image-size": 32, "data-classes": 6, "data-train": 66, "data-test": 16}
        job = pictures | {"model": "googlenet-slim", "steps": 3, "global-batch": 6, "evaluate-every": 3, "dropout": 0.4}
        self.equal([1, 2], job, ways=[("one", 1)])

    def test_an_early_end(self):
        self.equal([1, 1], {"steps": 400, "target-accuracy": 0.2, "evaluate-every": 2, "learning-rate": 0.05}, ways=[("all", 1)])

    def test_ten(self):
        """Sorted by name they are sorted by number."""
        with tempfile.TemporaryDirectory() as folder:
            job = os.path.join(folder, "a.job")
            with open(job, "w") as file:
                file.write("model = lenet\ndata = synthetic\nsteps = 3\nglobal-batch = 20\nevaluate-every = 0\n")
            self.assertEqual(simulate(job, "--members", 10, "-o", folder + "/ten")[0], 0)
            code, out, err = recompute(folder + "/ten")
            self.assertEqual((code, err), (0, ""), out)
            self.assertIn("of member-01, member-02, ", out)


class Interrupted(unittest.TestCase):
    def test_the_same_command_continues(self):
        with tempfile.TemporaryDirectory() as folder:
            job, whole, halves = (os.path.join(folder, name) for name in ("a.job", "whole", "halves"))
            with open(job, "w") as file:
                file.write("model = lenet\ndata = synthetic\nsteps = 60\nglobal-batch = 16\nevaluate-every = 20\nlearning-rate = 0.05\nkeep = best\n")
            asked = (job, "--members", 2, "--gradients", 20)
            code, out, err = simulate(*asked, "-o", whole)
            self.assertEqual((code, err), (0, ""), out)
            self.assertRegex(out, r"memory: \d+ MiB more for 2 members")
            self.assertRegex(out, r"step 5 of 60, loss .*, about (\d+m\d\d|\d+)s left")
            # It looks for a signal after its first step and then every five seconds, in which a fast machine does all of them.
            for _ in range(50):
                shutil.rmtree(halves, ignore_errors=True)
                with subprocess.Popen(command(*asked, "-o", halves), env=OWN, stdout=subprocess.PIPE, text=True) as process:
                    end = time.monotonic() + PATIENCE
                    while not os.path.exists(os.path.join(halves, "run.json")) and time.monotonic() < end:
                        time.sleep(0.001)
                    process.send_signal(signal.SIGINT)
                    out, _ = communicate(process, PATIENCE)
                if process.returncode != 0:
                    break
            self.assertEqual(process.returncode, 1, out)
            self.assertIn("the same command goes on from here", out)
            step = record_of(halves)["step"]
            self.assertTrue(0 < step < 60, step)
            for other, what in ((("--members", 3), "2 members of weights 1,1"), (("--members", 2, "--set", "steps=30"), "steps = 60")):
                code, _, err = simulate(job, *other, "-o", halves)
                self.assertEqual(code, 2)
                self.assertIn(f"has another run, {record_of(halves)['id']}, with {what}: name another folder with -o, or delete {halves}", err)
            self.otherwise(asked, halves)
            code, out, err = simulate(*asked, "--replicas", "all", "-o", halves)
            self.assertEqual((code, err), (0, ""), out)
            self.assertIn(f"steps {step + 1} to 60", out)
            self.assertEqual(record_of(halves)["digest"], record_of(whole)["digest"])
            self.assertEqual(losses_in(os.path.join(halves, "metrics.jsonl")), losses_in(os.path.join(whole, "metrics.jsonl")))
            with open(os.path.join(halves, "model.safetensors"), "rb") as one, open(os.path.join(whole, "model.safetensors"), "rb") as other:
                self.assertEqual(one.read()[-1_000_000:], other.read()[-1_000_000:])
            lines = [gradients_in(folder) for folder in (whole, halves)]
            self.assertEqual(*lines)
            self.assertEqual([line["step"] for line in lines[0] if line["segment"] is None], list(range(20, 61, 20)))
            with open(os.path.join(whole, "metrics.jsonl")) as file:
                zeros = {line["step"]: line["layer_zeros"] for line in map(json.loads, file) if "layer_zeros" in line}
            for line in lines[0]:
                clipped = line["clipped"]
                self.assertEqual(sum(line["before"]["histogram"]), line["elements"])
                self.assertEqual(sum(clipped["histogram"]), line["elements"])
                self.assertAlmostEqual(clipped["length"], line["before"]["length"] * line["length_ratio"])
                self.assertLessEqual(clipped["max"], line["before"]["max"])
                if line["segment"]:
                    self.assertAlmostEqual(line["codes"]["counts"][1] / line["elements"], zeros[line["step"]][line["segment"]], msg="codes as they were sent")
                    self.assertEqual(sum(line["codes"]["sums"]), line["elements"])
                if line["segment"] is None:
                    self.assertTrue(0 < line["clipped_elements"] < line["elements"])
                    self.assertTrue(0 < line["angle_degrees"] < 90)
            self.assertIn("has this run already, COMPLETED at step 60", simulate(job, "--members", 2, "-o", halves)[2])

    def otherwise(self, asked, folder):
        """What it cannot go on from is said."""
        path = os.path.join(folder, "run.json")
        with open(path) as file:
            before = file.read()
        for change, what in (
            (lambda record: record["own"].update(engine_build="oneDNN 9.9.9 vax, 1 thread"), f"{folder} was begun with oneDNN 9.9.9 vax, 1 thread, and here it is "),
            (lambda record: record["spec"].update(steps="many"), f"{folder}/run.json is damaged: its job cannot be read: "),
        ):
            change_record(folder, change)
            code, _, err = simulate(*asked, "-o", folder)
            self.assertEqual(code, 1)
            self.assertIn(what, err)
            with open(path, "w") as file:
                file.write(before)

    def test_before_its_first_step(self):
        with tempfile.TemporaryDirectory() as folder:
            job, made = os.path.join(folder, "a.job"), os.path.join(folder, "made")
            with open(job, "w") as file:
                file.write("model = resnet-20\ndata = fractals\nimage-size = 224\ndata-train = 100000\nsteps = 3\nglobal-batch = 16\n")
            with subprocess.Popen(command(job, "--members", 1, "-o", made), env=OWN, stdout=subprocess.PIPE, text=True) as process:
                wait_until("it has begun", lambda: os.path.exists(os.path.join(made, "lock")))
                process.send_signal(signal.SIGTERM)
                out, _ = communicate(process, PATIENCE)
            self.assertEqual((process.returncode, out), (1, "ended before its first step\n"))

    def test_a_half_written_end(self):
        """Killed after the state, before run.json: the run is there again when the same command comes."""
        with tempfile.TemporaryDirectory() as folder:
            job, made = os.path.join(folder, "a.job"), os.path.join(folder, "made")
            with open(job, "w") as file:
                file.write("model = lenet\ndata = synthetic\nsteps = 3\nglobal-batch = 16\n")
            self.assertEqual(simulate(job, "--members", 1, "-o", made)[0], 0)
            digest = record_of(made)["digest"]
            change_record(made, lambda record: record.update(state="RUNNING"))
            partial = os.path.join(made, "checkpoint-1-1-3.safetensors.partial")
            with open(partial, "w"):
                pass
            with open(os.path.join(made, "lock")) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                code, _, err = simulate(job, "--members", 1, "-o", made)
                self.assertEqual(code, 1)
                self.assertIn(f"{made} is being computed by another tgd simulate: wait for it, or name another folder with -o", err)
            code, out, err = simulate(job, "--members", 1, "-o", made)
            self.assertEqual((code, err), (0, ""), out)
            self.assertEqual((record_of(made)["state"], record_of(made)["digest"]), ("COMPLETED", digest))
            self.assertFalse(os.path.exists(partial))

    def test_its_limits_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            job = os.path.join(folder, "a.job")
            with open(job, "w") as file:
                file.write("model = lenet\ndata = synthetic\nsteps = 4\nglobal-batch = 16\n")
            for arguments, what in (
                ((), "simulate takes one job file"),
                ((job,), "-o DIR is missing"),
                ((job, "-o", folder + "/x"), "--members N is missing"),
                ((job, "-o", folder + "/x", "--members", 0), "from 1 to 127 members"),
                ((job, "-o", folder + "/x", "--members", 128), "from 1 to 127 members"),
                ((job, "-o", folder + "/x", "--weights", "1,,2"), "--weights takes numbers from 1 to 1000"),
                ((job, "-o", folder + "/x", "--weights", "1,2", "--members", 3), "different numbers of members"),
                ((job, "-o", folder + "/x", "--members", 2, "--threads", 0), "--threads takes a number from 1"),
                ((job, "-o", folder + "/x", "--members", 2, "--replicas", 2), "--replicas takes one or all"),
                ((job, "-o", folder + "/x", "--members", 2, "--gradients", 0), "--gradients takes a number of steps from 1"),
                ((job, "-o", folder + "/x", "--members", 2, "--gradients", -1), "--gradients takes a whole number from 0"),
                ((job, "-o", folder + "/x", "--members", "-2"), "--members takes a whole number from 0"),
                ((job, "-o", folder + "/x", "--members", 2, "--set", "lr=1"), "learning-rate"),
                ((job, "-o", folder, "--members", 2), "has no run.json, so no simulation"),
                ((folder + "/none.job", "-o", folder + "/x", "--members", 2), "none.job cannot be read"),
            ):
                with self.subTest(arguments):
                    code, _, err = simulate(*arguments)
                    self.assertEqual(code, 2, err)
                    self.assertIn(what, err)


if __name__ == "__main__":
    unittest.main()
