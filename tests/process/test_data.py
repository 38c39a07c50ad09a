"""Data of one's own: folders of pictures, arrays in .npy files, fractals that need no files."""

import json
import os
import shutil
import unittest

from files import read_metrics, write_npy, write_pictures
from mesh import Mesh

JOB = {"data-train": None, "data-test": None, "steps": 12, "global-batch": 6, "evaluate-every": 6}


class Data(unittest.TestCase):
    def digest(self, mesh, job):
        run = mesh.run(mesh.start(job))
        digests = {member["node"]: member["digest"] for member in run["members"]}
        self.assertEqual(len(set(digests.values())), 1, f"run {run['id']}: {digests}")
        return run["digest"]

    def test_folder_of_pictures(self):
        with Mesh(2, settings={"threads": 2}) as mesh:
            folders = [os.path.join(mesh.folder, f"pictures-{index}") for index in range(2)]
            write_pictures(folders[0])
            shutil.copytree(folders[0], folders[1])
            for index in range(2):
                mesh.configure(index, data_dir=folders[index])
            mesh.restart()
            job = JOB | {"data": "folder"}
            self.digest(mesh, job)

            # Another picture on one node.
            path = os.path.join(folders[1], "train", "grey", "0003.png")
            with open(path, "rb") as file:
                picture = file.read()
            shutil.copy(os.path.join(folders[1], "train", "grey", "0004.png"), path)
            mesh.ctl("start", mesh.job_file(job)).refuses(2, "data differ", "(48 files of ", "36 + 12 samples), node-b has ", "train/grey/0003.png differs; ")

            # One byte of one picture on one node: found before the run begins, since pixels are looked at too.
            with open(path, "wb") as file:
                file.write(picture[:-20] + bytes([picture[-20] ^ 1]) + picture[-19:])
            mesh.ctl("start", mesh.job_file(job)).refuses(1, "node-b: ", "train/grey/0003.png is damaged")

            # The same damage everywhere: a start does without it, if it is told to.
            shutil.copy(path, os.path.join(folders[0], "train", "grey", "0003.png"))
            self.digest(mesh, job | {"damaged": "skip"})
            self.assertIn("0003.png is damaged", mesh[0].log_text() + mesh[1].log_text())

            job["test-share"] = 0.5
            mesh.ctl("start", mesh.job_file(job)).refuses(2, "test-share is set", "leave out one")

    def test_the_data_are_described(self):
        """A sentence and warnings, before a run and in all that is left of it; and epochs, which are passes over that."""
        with Mesh(2) as mesh:
            folder = os.path.join(mesh.folder, "pictures")
            write_pictures(folder)
            shutil.rmtree(os.path.join(folder, "test", "grey"))
            with open(os.path.join(folder, "train", "grey", "a.webp"), "wb") as file:
                file.write(b"RIFF")
            job = JOB | {"data": "folder", "data-dir": folder, "steps": None, "epochs": 2}
            read = "3 classes, 36 + 8 pictures of 1x28x28, 6 steps an epoch, flip horizontal, 1 file left out (train/grey/a.webp: not a JPEG or PNG)"
            warnings = [
                "1 file left out (train/grey/a.webp: not a JPEG or PNG); convert those that you want to train on",
                "class grey has no test samples: the accuracy says nothing of it; hold some back for testing",
                "training flips half of the pictures left to right; letters, digits and signs do not survive that: "
                "flip = none leaves it out, flip = horizontal says that it is meant",
            ]
            flat = lambda text: " ".join(text.split())
            dry = flat(mesh.ctl_ok("start", mesh.job_file(job), "--dry-run").out)
            page = os.path.join(mesh.folder, "samples.html")
            said = mesh.ctl_ok("data", "show", mesh.job_file(job), "-o", page).out.splitlines()
            self.assertEqual(said, [read, *[f"warning: {text}" for text in warnings], page])
            with open(page, encoding="utf-8") as file:
                self.assertEqual(file.read().count("data:image/png;base64,"), 24)
            run = mesh.start(job)
            shown = mesh.run(run)
            self.assertEqual((shown["data_read"], shown["data_warnings"], shown["step"], shown["steps"]), (read, warnings, 12, 12))
            self.assertIn("epochs = 2", shown["settings"])
            with open(mesh[1].run_file(run, "run.json"), encoding="utf-8") as file:
                record = json.load(file)
            self.assertEqual((record["data_read"], record["data_warnings"]), (read, warnings))
            status, log = flat(mesh.ctl_ok("status", run).out), mesh.ctl_ok("logs", run).out
            for text in [read, *warnings]:
                self.assertIn(text, dry)
                self.assertIn(text, status)
                self.assertIn(text, log)

            # Said at the start, too, and not again of what is meant.
            started = mesh.ctl_ok("start", mesh.job_file(job | {"flip": "horizontal"}), "--detach")
            self.assertIn(f"reads {read}", started.err)
            self.assertNotIn("flip = none", started.err)
            second = started.out.strip()
            mesh.ctl_ok("wait", second, "--timeout", "60s")
            self.assertRegex(mesh.ctl_ok("compare", run, second).out, r"flip +auto +horizontal\n")
            self.assertIn("flip=horizontal", mesh.ctl_ok("list").out)

            # More epochs of a run that is COMPLETED; its recomputation knows how many steps they were.
            mesh.ctl("resume", run).refuses(1, "COMPLETED at step 12 of 12")
            mesh.ctl_ok("resume", run, "--set", "epochs=3")
            self.assertEqual((mesh.run(run)["step"], mesh.run(run)["steps"]), (18, 18))
            mesh.ctl_ok("resume", run, "--set", "steps=20")
            self.assertEqual((mesh.run(run)["step"], mesh.run(run)["steps"]), (20, 20))

    def test_a_wait_for_data_is_shown(self):
        """Pictures much larger than what the network sees: to decode them takes longer than to learn from them."""
        with Mesh(1) as mesh:
            folder = os.path.join(mesh.folder, "pictures")
            write_pictures(folder, per_class=4, side=500)
            run = mesh.start(JOB | {"data": "folder", "data-dir": folder, "image-size": 28, "steps": 8, "evaluate-every": 0})
            (member,) = mesh.run(run)["members"]
            pictures = member["data_wait_share"]
            self.assertGreater(pictures, 0.1)
            self.assertRegex(mesh.ctl_ok("status", run).out, r"  waits for data \d+ % of its time\n")
            rows = read_metrics(mesh[0].run_file(run, "metrics.jsonl"))
            share = sum(row["data_wait_seconds"] for row in rows) / sum(row["seconds"] for row in rows)
            self.assertAlmostEqual(pictures, share, delta=0.01)

            # Drawn digits lie in memory.
            (member,) = mesh.run(mesh.start({"steps": 8}))["members"]
            self.assertLess(member["data_wait_share"], pictures / 2)

    def test_arrays(self):
        """(Arrays of features, and what fetch writes of them: test_artefact.)"""
        with Mesh(2) as mesh:
            folder = os.path.join(mesh.folder, "arrays")
            os.makedirs(folder)
            write_npy(os.path.join(folder, "x.npy"), "u1", (30, 28, 28), [i * 7 % 256 for i in range(30 * 784)])
            write_npy(os.path.join(folder, "y.npy"), "i8", (30,), [i % 3 for i in range(30)])
            job = JOB | {"data": "npy", "data-dir": folder}
            mesh.ctl("start", mesh.job_file(job)).refuses(2, "set test-share")
            self.digest(mesh, job | {"test-share": 0.2})
            with open(os.path.join(folder, "x.npy"), "r+b") as file:
                file.truncate(5000)
            answer = mesh.ctl("start", mesh.job_file(job | {"test-share": 0.2}))
            answer.refuses(answer.code, "x.npy is truncated")


if __name__ == "__main__":
    unittest.main()
