"""A run that is computed again in one process comes to the bits that its nodes came to, or the difference is said."""

import json
import os
import re
import signal
import subprocess
import unittest

from files import write_cifar10
from mesh import Mesh
from node import OF_TESTS, TGD
from patience import PATIENCE, communicate, wait_until
from resuming import kill_all, start_all, intervals, wait_for_checkpoint


def recompute(*arguments, patience=PATIENCE):
    """Its exit code, stdout and stderr."""
    own = {name: value for name, value in os.environ.items() if name not in OF_TESTS}
    with subprocess.Popen([TGD, "recompute", *map(str, arguments)], cwd="/", env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        out, err = communicate(process, patience)
    return process.returncode, out, err


def change_record(folder, change):
    path = os.path.join(folder, "run.json")
    with open(path) as file:
        record = json.load(file)
    change(record)
    with open(path, "w") as file:
        json.dump(record, file)


class Recompute(unittest.TestCase):
    def equal(self, folder, digest, *arguments):
        code, out, err = recompute(folder, *arguments)
        self.assertEqual((code, err), (0, ""), out)
        self.assertRegex(out, rf"\nrecomputed (\d+) steps of \d members: digest {digest}, as recorded; \1 of \1 losses compared\n$")
        return out

    def test_a_run_of_three(self):
        with Mesh(3, per_node={1: {"weight": 3}}) as mesh:
            job = {"steps": 30, "optimizer": "momentum", "global-batch": 18, "evaluate-every": 10, "weight-decay": 0.001}
            run = mesh.start(job)
            folder = mesh.fetch(run)
            digest = mesh.run(run)["digest"]
            out = self.equal(folder, digest)
            self.assertIn("steps 1 to 30 of node-a, node-b, node-c: digest", out)
            self.assertRegex(out, r"evaluation of step 30: accuracy 0\.\d{4}, loss \d\.\d{4}, as recorded")
            self.assertRegex(out, r"memory: \d+ MiB more for 3 members")
            with open(os.path.join(folder, "members.json")) as file:
                self.assertEqual({node: one["threads"] for node, one in json.load(file).items()}, {"node-a": 1, "node-b": 1, "node-c": 1})
            # A node's own folder knows less of the others.
            self.assertIn("what node-b, node-c computed with is not recorded here", self.equal(os.path.dirname(mesh[0].run_file(run, "run.json")), digest))
            self.differences(folder, digest)
            self.refusals(folder)

    def differences(self, folder, digest):
        other = ("0" if digest[0] != "0" else "1") + digest[1:]

        def flip(record):
            record["digest"] = record["own"]["digest"] = other

        def back(record):
            record["digest"] = record["own"]["digest"] = digest

        def later(record):
            record["evaluation"]["step"] += 1

        change_record(folder, later)
        self.assertIn("the evaluation of step 31 is not compared: no step that led to the end has it\n", self.equal(folder, digest))
        change_record(folder, lambda record: record["evaluation"].update(step=30))
        change_record(folder, flip)
        code, _, err = recompute(folder)
        self.assertEqual(code, 1)
        self.assertIn(f"tgd: steps 1 to 30 of node-a, node-b, node-c: digest {digest}, and {other} is recorded; 30 of 30 losses compared, as recorded\n", err)
        change_record(folder, back)
        path = os.path.join(folder, "metrics.jsonl")
        with open(path) as file:
            lines = file.read()

        def with_lines(text):
            with open(path, "w") as file:
                file.write(text)
            code, out, err = recompute(folder)
            return code, (out + err).splitlines()[-1]

        code, said = with_lines(lines[: len(lines) // 2])  # as every file that is not what its writer's record says of it
        self.assertEqual(code, 1)
        self.assertIn("metrics.jsonl is not as it was written: its SHA-256 is ", said)
        marks = {}
        change_record(folder, lambda record: marks.update(record["files"]) or record["files"].pop("metrics.jsonl"))  # its disk was full, and it has no hash
        code, said = with_lines(re.sub(r'("step":17,"loss":)', r"\g<1>1", lines, count=1))
        self.assertEqual(code, 1)
        self.assertIn("as recorded; the first loss that differs is that of step 17", said)
        self.assertEqual(with_lines("".join(lines.splitlines(True)[:9])), (0, f"recomputed 30 steps of 3 members: digest {digest}, as recorded; 9 of 30 losses compared"))
        code, said = with_lines("")
        self.assertEqual(code, 1)
        self.assertIn(f"digest {digest}, as recorded; no loss was compared: ", said)
        os.unlink(path)
        os.mkfifo(path)
        code, _, err = recompute(folder)
        self.assertEqual(code, 1)
        self.assertIn("metrics.jsonl: it is not a regular file", err)
        os.unlink(path)
        with open(path, "w") as file:
            file.write(lines)
        change_record(folder, lambda record: record["files"].update(marks))

    def refusals(self, folder):
        path = os.path.join(folder, "members.json")
        with open(path) as file:
            members = file.read()

        def with_member(**changes):
            changed = json.loads(members)
            changed["node-b"] |= changes
            with open(path, "w") as file:
                json.dump(changed, file)
            code, _, err = recompute(folder)
            self.assertEqual(code, 1, changes)
            self.assertIn("node-b computed with ", err)
            return err

        self.assertIn("here it is oneDNN", with_member(engine_build="oneDNN 9.9.9 vax, 1 thread"))
        self.assertIn("accept other last bits with --threads", with_member(threads=4096))
        self.assertIn("NVIDIA T4", with_member(engine="cuda", device="NVIDIA T4 (device 1)"))
        with open(path, "w") as file:
            file.write(members)
        code, _, err = recompute(folder, "--threads", "2")  # other bits, or not: it is computed
        self.assertIn(code, (0, 1))
        self.assertNotIn("node-", err.split(": digest")[0].split("steps 1 to 30 of")[0])
        for words, change in {
            "was RUNNING": {"state": "RUNNING"},
            "run.json is not as it was written: of step 30 the run has digest 0000000000000001": {"digest": "0000000000000001"},
            "run.json is not as it was written: its job has hash ": {"spec": {"model": "lenet"}},
            "never began": {"spec": {}},
            "field weights is not a list of weights": {"weights": [0, 1, 1]},
            "does not say whose it was": {"members": ["node-a", "node-a", "node-c"]},
            "field global_batch is not a whole number in bounds": {"global_batch": 10**15},
        }.items():
            before = {}

            def spoil(record):
                before.update({key: record[key] for key in change})
                record.update(change)

            change_record(folder, spoil)
            code, _, err = recompute(folder)
            self.assertEqual(code, 1, words)
            self.assertIn(words, err)
            change_record(folder, lambda record: record.update(before))
        code, _, err = recompute(os.path.join(folder, "nowhere"))
        self.assertEqual(code, 1)
        self.assertIn("recompute takes a folder that tgctl fetch made", err)
        self.assertEqual(recompute()[0], 2)
        self.assertEqual(recompute("--odd", folder)[0], 2)
        self.assertEqual(recompute(folder, "--threads", "0")[0], 2)
        self.assertEqual(recompute("--help")[0], 0)

    def test_a_run_that_was_resumed(self):
        """Killed; trained on with another schedule; gone back, which throws an interval away."""
        with Mesh(3) as mesh:
            data = os.path.join(mesh.folder, "cifar10")
            write_cifar10(data, per_batch=16)
            job = {"model": "cifarnet", "data": "cifar10", "data-dir": data, "data-train": None, "data-test": None, "optimizer": "adamw", "weight-decay": 0.1, "learning-rate": 0.001,
                   "schedule": "cosine", "warm-up": 5, "freeze": "conv1.", "global-batch": 7, "steps": 48, "checkpoint-every": "50ms", "gradients": "float32"}
            follower = mesh.follow("start", mesh.job_file(job))
            run = follower.first_line()
            wait_for_checkpoint(mesh, run)
            kill_all(mesh)
            follower.finish()
            start_all(mesh)
            mesh.ctl_ok("resume", run)
            mesh.ctl_ok("resume", run, "--set", "steps=52")
            folder = mesh.fetch(run)
            lines = intervals(mesh[0], run)
            self.assertEqual([line["lineage"] for line in lines], [1, 2, 3])
            self.assertEqual([line["settings"]["steps"] for line in lines], ["48", "48", "52"])
            out = self.equal(folder, mesh.run(run)["digest"])
            self.assertIn(f"steps 1 to {lines[1]['from']['step']} of node-a, node-b, node-c: digest {lines[1]['from']['digest']}, as recorded", out)
            self.assertIn("steps 49 to 52 of", out)
            # Its data, elsewhere and nowhere.
            moved = os.path.join(mesh.folder, "moved")
            os.rename(data, moved)
            code, _, err = recompute(folder)
            self.assertEqual(code, 1)
            self.assertIn(data, err)
            self.equal(folder, mesh.run(run)["digest"], "--data-dir", moved)
            with open(os.path.join(moved, "data_batch_1.bin"), "r+b") as file:
                file.seek(100)
                byte = file.read(1)
                file.seek(100)
                file.write(bytes([byte[0] ^ 1]))
            code, _, err = recompute(folder, "--data-dir", moved)
            self.assertEqual(code, 1)
            self.assertIn("the data are not those of the run", err)

    def test_an_abandoned_lineage(self):
        with Mesh(2) as mesh:
            run = mesh.start({"steps": 12})
            mesh.ctl_ok("resume", run, "--from", "0", "--set", "steps=10", "--set", "learning-rate=0.02")
            folder = mesh.fetch(run)
            self.assertEqual([line["lineage"] for line in intervals(mesh[0], run)], [1, 2])
            self.assertEqual(self.equal(folder, mesh.run(run)["digest"]).count("steps 1 to 10 of"), 1)

    def test_members_that_were_lost(self):
        """Two of four die, one after the other: three views."""
        with Mesh(4, per_node={3: {"weight": 2}}) as mesh:
            follower = mesh.follow("start", mesh.job_file({"steps": 150, "optimizer": "momentum", "evaluate-every": 50}))
            run = follower.first_line()
            for index, step in ((1, 20), (2, 60)):
                mesh.wait_for_step(run, step)
                kill_all(mesh, [mesh[index]])
                wait_until(lambda: f"{run} goes on without node {index}: {mesh.run(run)}", lambda: mesh.run(run)["step"] > step + 10)
            follower.finish()
            self.assertEqual(mesh.run(run)["state"], "COMPLETED")
            folder = mesh.fetch(run)
            self.assertEqual([line["view"] for line in intervals(mesh[0], run)], [1, 2, 3])
            out = self.equal(folder, mesh.run(run)["digest"])
            self.assertIn("what node-b, node-c computed with is not recorded here", out)
            self.assertIn(" of node-a, node-c, node-d: digest", out)
            self.assertIn("to 150 of node-a, node-d: digest", out)

    def test_interrupted(self):
        with Mesh(2) as mesh:
            run = mesh.start({"steps": 20})
            folder = mesh.fetch(run)

            def longer(record):
                record["spec"]["steps"] = "1000000"
                record["hashes"].pop("spec")
                record["own"]["digest_step"] = 900000
                record["step"] = 900000

            change_record(folder, longer)
            with subprocess.Popen([TGD, "recompute", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                self.assertIn("run ", process.stdout.readline())
                self.assertIn("memory: ", process.stdout.readline())
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.wait(PATIENCE), -signal.SIGINT)


if __name__ == "__main__":
    unittest.main()
