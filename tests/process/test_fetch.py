"""What fetch gets is what the members wrote, whatever has become of one member's copy."""

import hashlib
import json
import os
import subprocess
import tempfile
import unittest

from asking import TGCTL
from files import read_safetensors
from mesh import Mesh
from patience import PATIENCE, wait_until

MODELS = ("model.safetensors", "model-raw.safetensors")


def content(path):
    with open(path, "rb") as file:
        return file.read()


def flip(path):
    blob = bytearray(content(path))
    blob[len(blob) // 2] ^= 0x10
    with open(path, "wb") as file:
        file.write(blob)


def flip_header(path):
    blob = content(path)
    with open(path, "wb") as file:
        file.write(blob.replace(b'"digest":"', b'"digest":"f', 1))


DAMAGES = {
    "flipped": (flip, "its SHA-256 is"),
    "header": (flip_header, "is damaged"),
    "cut": (lambda path: os.truncate(path, 100_000), "it has 100000 bytes"),
    "empty": (lambda path: os.truncate(path, 0), "it has 0 bytes"),
    "gone": (os.remove, "has no"),
}


class Verified(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mesh = Mesh(3).__enter__()
        cls.addClassCleanup(cls.mesh.__exit__, None, None, None)

    def setUp(self):
        self.run_id = self.mesh.start({"steps": 3})
        self.mesh.wait_ended(self.run_id)

    def test_every_damage_is_named_and_passed_over(self):
        mesh, run = self.mesh, self.run_id
        good = {name: content(mesh[1].run_file(run, name)) for name in MODELS}
        for name in MODELS:  # nothing in them is of the node
            for node in mesh.nodes:
                self.assertEqual(content(node.run_file(run, name)), good[name], f"{node.name}'s {name}")
                mark = node.record(run)["files"][name]
                self.assertEqual(mark, {"bytes": len(good[name]), "sha256": hashlib.sha256(good[name]).hexdigest()})
        _, metadata = read_safetensors(mesh[0].run_file(run, MODELS[0]))
        header = int.from_bytes(good[MODELS[0]][:8], "little")
        self.assertEqual(metadata["values-sha256"], hashlib.sha256(good[MODELS[0]][8 + header :]).hexdigest())

        for name in (*MODELS, "metrics.jsonl"):
            path = mesh[0].run_file(run, name)
            whole = content(path)
            for damage, (spoil, words) in DAMAGES.items():
                if name != MODELS[0] and damage not in ("flipped", "empty"):
                    continue
                with self.subTest(file=name, damage=damage):
                    spoil(path)
                    folder = os.path.join(mesh.folder, f"{name}-{damage}")
                    answer = mesh.ctl("fetch", run, "-o", folder)
                    self.assertEqual(answer.code, 0, answer)
                    self.assertIn(f"node-a's {name}", answer.err.replace("node-a has no", "node-a's"), answer)
                    self.assertIn(words, answer.err)
                    for model in MODELS:
                        self.assertEqual(content(os.path.join(folder, model)), good[model])
                    with open(path, "wb") as file:
                        file.write(whole)

    def test_no_good_copy_writes_nothing(self):
        mesh, run = self.mesh, self.run_id
        for node, damage in zip(mesh.nodes, ("flipped", "empty", "gone")):
            DAMAGES[damage][0](node.run_file(run, MODELS[1]))
        folder = os.path.join(mesh.folder, "none")
        answer = mesh.ctl("fetch", run, "-o", folder)
        self.assertNotIn(answer.code, (0,), answer)
        self.assertIn("no reachable member has a valid model-raw.safetensors", answer.err)
        for node in mesh.nodes:
            self.assertIn(f"{node.name}", answer.err)
        self.assertEqual(os.listdir(folder), [])

    def test_the_model_comes_with_damaged_records(self):
        """What was there of an earlier fetch does not stay beside it either."""
        mesh, run = self.mesh, self.run_id
        folder = mesh.fetch(run)
        good = {name: content(os.path.join(folder, name)) for name in MODELS}
        for node in mesh.nodes:
            os.truncate(node.run_file(run, "metrics.jsonl"), 100)
        answer = mesh.ctl_ok("fetch", run, "-o", folder, "--force")
        for node in mesh.nodes:
            self.assertIn(f"{node.name}'s metrics.jsonl is damaged: it has 100 bytes", answer.err)
        self.assertIn("no metrics.jsonl: no reachable member has a valid one", answer.err)
        self.assertEqual(sorted(os.listdir(folder)), sorted(["members.json", "model.json", "predict.py", "run.json", "views.jsonl", *MODELS]))
        for node in mesh.nodes:
            os.truncate(node.run_file(run, "run.json"), 100)
        answer = mesh.ctl_ok("fetch", run, "-o", folder, "--force")
        self.assertIn("node-c's run.json is damaged", answer.err)
        self.assertIn("no model.json and no predict.py: no reachable member has a valid run.json", answer.err)
        self.assertEqual(sorted(os.listdir(folder)), sorted(["metrics.jsonl", *MODELS]))
        for name in MODELS:
            self.assertEqual(content(os.path.join(folder, name)), good[name])

    def test_another_models_description_does_not_stay(self):
        mesh = self.mesh
        folder = mesh.fetch(self.run_id)
        self.assertLessEqual({"model.json", "predict.py"}, set(os.listdir(folder)))
        replayed = mesh.start({"compute": "replay", "steps": 2, "data": None, "data-train": None, "data-test": None})
        self.assertIn("no model.json and no predict.py", mesh.ctl_ok("fetch", replayed, "-o", folder, "--force").err)
        self.assertEqual(sorted(os.listdir(folder)), sorted(["members.json", "metrics.jsonl", *MODELS, "report.html", "run.json", "views.jsonl"]))

    def test_a_damaged_record_is_passed_over(self):
        mesh, run = self.mesh, self.run_id
        os.truncate(mesh[0].run_file(run, "run.json"), 200)
        folder = os.path.join(mesh.folder, "record")
        answer = mesh.ctl("fetch", run, "-o", folder)
        self.assertEqual(answer.code, 0, answer)
        self.assertIn("node-a's run.json is damaged", answer.err)
        with open(os.path.join(folder, "run.json")) as file:
            self.assertEqual(json.load(file) | {"fetched": None}, mesh[1].record(run) | {"fetched": None})


class Timelines(unittest.TestCase):
    def test_a_damaged_one_is_named_and_left_out(self):
        """No other node has a copy of it. One of an earlier fetch does not stay either."""
        with Mesh(2) as mesh:
            run = mesh.start({"trace": "true"})
            mesh.wait_ended(run)
            folder = mesh.fetch(run)
            for node in mesh.nodes:
                whole = content(node.run_file(run, "trace.json"))
                self.assertEqual(node.record(run)["files"]["trace.json"], {"bytes": len(whole), "sha256": hashlib.sha256(whole).hexdigest()})
                self.assertEqual(content(os.path.join(folder, f"trace-{node.name}.json")), whole)
            path = mesh[0].run_file(run, "trace.json")
            whole = content(path)
            for damage in ("flipped", "cut", "empty", "gone"):
                with self.subTest(damage=damage):
                    spoil, words = DAMAGES[damage]
                    if damage == "cut":
                        spoil, words = (lambda name: os.truncate(name, 100)), "it has 100 bytes"
                    spoil(path)
                    answer = mesh.ctl_ok("fetch", run, "-o", folder, "--force")
                    self.assertRegex(answer.err, f"no timeline of node-a: node-a's trace.json.*{words}")
                    self.assertNotIn("trace-node-a.json", os.listdir(folder))
                    self.assertIn("trace-node-b.json", os.listdir(folder))
                    with open(path, "wb") as file:
                        file.write(whole)


class Folder(unittest.TestCase):
    def test_a_folder_that_cannot_be_written_is_named_with_its_owner(self):
        with Mesh(1) as mesh, tempfile.TemporaryDirectory() as folder:
            run = mesh.start()
            mesh.wait_ended(run)
            os.chmod(folder, 0o555)
            other = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
            there, new = folder, os.path.join(folder, "new", "one")
            for wanted, words in ((there, "cannot be written to"), (new, "cannot be created")):
                try:
                    done = subprocess.run([TGCTL, "fetch", run, "-o", wanted, "--address", mesh[0].address], capture_output=True, text=True, timeout=PATIENCE, **other)
                except PermissionError:
                    self.skipTest("another user may not run this tgctl")
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(f"{wanted} {words}: Permission denied; {folder} belongs to user {os.getuid()} and has mode 555", done.stderr)
                self.assertIn(f"tgctl runs as user {other.get('user', os.getuid())}: make it writable, or give another folder with -o", done.stderr)
                self.assertEqual(os.listdir(folder), [])


class Deleted(unittest.TestCase):
    def test_on_all_nodes_that_answer(self):
        with Mesh(3) as mesh:
            run = mesh.start()
            mesh.wait_ended(run)
            mesh.fetch(run)
            for node in mesh.nodes:
                wait_until(f"{node.name}'s {run} is marked as fetched", lambda: node.record(run)["fetched"])
            live = mesh.detach({"steps": 100000})
            mesh.ctl("delete", live, node=1).ends(1, f"tgctl stop {live}")
            mesh.ctl_ok("stop", live)
            mesh[2].end()
            wait_until("node-c is missed", lambda: mesh.status()["nodes"][2]["state"] != "up")
            answer = mesh.ctl("delete", run).ends(1, "node-c did not answer and still has its copy", f"tgctl delete {run}")
            self.assertIn("node-a, node-b", answer.out)
            self.assertFalse(os.path.exists(os.path.dirname(mesh[0].run_file(run, "run.json"))))
            self.assertIn("event=run-deleted", mesh[1].log_text())
            mesh[2].start()
            mesh.wait_ready()
            wait_until("node-c tells of its copy", lambda: mesh.ctl("status", run, node=1).code == 0)
            self.assertIn("node-c", mesh.ctl_ok("delete", run, node=1).out)
            mesh.ctl("status", run, node=2).ends(4)


if __name__ == "__main__":
    unittest.main()
