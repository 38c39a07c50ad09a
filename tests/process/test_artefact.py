"""What fetch writes is enough to use a model without tgd: model.json says it all, and predict.py scores what tgd does.
The part with PyTorch takes the Python that TGD_PYTORCH names, or Debian's, and is skipped where that has no torch."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from files import write_npy, write_pictures
from mesh import Mesh

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("TGD_PYTORCH", "/usr/bin/python3")
JOB = {"data-train": None, "data-test": None, "steps": 12, "global-batch": 6}


def predict(folder, *arguments, python=(PYTHON,)):
    """Exit code, stdout, stderr; it runs in another folder, as it may."""
    done = subprocess.run([*python, os.path.join(folder, "predict.py"), *arguments], cwd="/", capture_output=True, text=True, timeout=300)
    if "Traceback" in done.stderr:
        raise AssertionError(f"predict.py {arguments}: {done.stderr}")
    return done.returncode, done.stdout, done.stderr


class Artefact(unittest.TestCase):
    def fetch(self, mesh, job):
        run = mesh.start(JOB | job)
        folder = mesh.fetch(run)
        with open(os.path.join(folder, "model.json")) as file:
            model = json.load(file)
        shown = mesh.run(run)
        self.assertEqual((model["run"], model["model"], model["step"]), (run, job.get("model", "lenet"), 12))
        self.assertEqual(model["digest"], shown["digest"])
        for key in ("step", "accuracy", "loss"):
            self.assertEqual(model["evaluation"][key], shown["evaluation"][key])
        self.assertRegex(model["tgd"], r"^\d+\.\d+\.\d+\+[0-9a-f]{12}$")
        self.assertEqual(model["evaluation"]["samples"], model["data"]["test_samples"])
        self.assertEqual(model["preprocessing"]["input"], model["input"]["shape"])
        return folder, model

    def needs_pytorch(self):
        try:
            done = subprocess.run([PYTHON, "-c", "import torch, numpy, PIL"], capture_output=True, text=True, timeout=300)
            problem = done.stderr.strip().splitlines()[-1:] if done.returncode else None
        except OSError as error:
            problem = error
        if problem:
            self.skipTest(f"all but PyTorch's part passed; {PYTHON} (TGD_PYTORCH names another): {problem}")

    def scores_the_same(self, model, answer):
        code, out, err = answer
        self.assertEqual((code, err), (0, ""), answer)
        accuracy, count, loss = re.match(r"accuracy (\S+) % of (\d+), loss (\S+)\n", out).groups()
        said = model["evaluation"]
        self.assertEqual((accuracy, int(count)), (f"{100 * said['accuracy']:.2f}", said["samples"]), out)
        self.assertAlmostEqual(float(loss), said["loss"], delta=2e-4, msg=out)

    def test_pictures(self):
        with Mesh(2) as mesh:
            data = os.path.join(mesh.folder, "pictures")
            write_pictures(data)
            for part in ("train", "test"):
                for name, to in (("jpeg_grey", "dark"), ("jpeg_baseline", "grey"), ("jpeg_cmyk", "bright"), ("png_palette", "dark")):
                    ending = ".png" if name.startswith("png") else ".jpg"
                    shutil.copy(ROOT / "tests/fuzz/corpus/pictures" / name, os.path.join(data, part, to, name + ending))
            folder, model = self.fetch(mesh, {"data": "folder", "data-dir": data, "image-size": 28})
            self.assertEqual(model["classes"], ["bright", "dark", "grey"])
            self.assertEqual(model["preprocessing"]["resize"], 32)
            self.assertEqual(model["input"], {"shape": [3, 28, 28], "order": "CHW", "channels": "RGB"})
            self.assertEqual(model["data"]["test_samples"], 16)
            listed = mesh.ctl("fetch", model["run"], "-o", folder)
            listed.refuses(listed.code, "--force")
            self.assertEqual(sorted(os.listdir(folder)), ["members.json", "metrics.jsonl", "model-raw.safetensors", "model.json", "model.safetensors", "predict.py", "report.html", "run.json", "views.jsonl"])
            with open(os.path.join(folder, "predict.py")) as ours, open(ROOT / "ctl/fetch/predict.py") as theirs:
                self.assertEqual(ours.read(), theirs.read())
            bare = predict(folder, "picture.jpg", python=(sys.executable, "-I", "-S"))
            self.assertEqual(bare[:2], (1, ""))
            self.assertRegex(bare[2], r"^predict.py: \w+ is missing: pip install \w+, or on Debian sudo apt-get install python3-\w+\n$")

            self.needs_pytorch()
            self.scores_the_same(model, predict(folder, "--test", data))
            self.scores_the_same(model, predict(folder, "--test", os.path.join(data, "test"), "--batch", "5"))
            pictures = [os.path.join(data, "test", name, "0000.png") for name in ("dark", "bright")]
            code, out, err = predict(folder, *pictures, "--top", "2")
            self.assertEqual((code, err), (0, ""))
            for picture, line in zip(pictures, out.splitlines()):
                title, first, most, second, less = line.split("\t")
                self.assertEqual(title, picture)
                self.assertTrue({first, second} <= set(model["classes"]) and 1 >= float(most) >= float(less) >= 0, line)

            os.makedirs(os.path.join(data, "test", "brown"))
            shutil.copy(pictures[0], os.path.join(data, "test", "brown"))
            code, _, err = predict(folder, "--test", data)
            self.assertEqual(code, 1)
            self.assertIn("is of a class brown, which this model does not know; it knows bright, dark, grey", err)
            shutil.rmtree(os.path.join(data, "test", "brown"))
            os.truncate(pictures[0], 60)
            code, out, err = predict(folder, *pictures)
            self.assertEqual((code, len(out.splitlines())), (1, 1))
            self.assertRegex(err, rf"^predict.py: [^\n]*{pictures[0]}[^\n]*\n$")
            code, out, err = predict(folder, "--test", data)
            self.assertEqual(code, 1)
            self.assertIn("% of 15,", out)
            self.assertIn("left out: ", err)
            os.remove(os.path.join(folder, "model.json"))
            code, _, err = predict(folder, pictures[1])
            self.assertEqual((code, err.count("\n")), (1, 1))
            self.assertIn("needs model.json and model.safetensors in its folder", err)

    def test_arrays_with_a_part_held_back(self):
        with Mesh(2) as mesh:
            data = os.path.join(mesh.folder, "arrays")
            os.makedirs(data)
            write_npy(os.path.join(data, "x.npy"), "f4", (40, 9), [(i * i % 97) / 10 - (i % 7) for i in range(40 * 9)])
            write_npy(os.path.join(data, "y.npy"), "i8", (40,), [i % 7 for i in range(40)])
            job = {"model": "mlp", "hidden": "12,8", "data": "npy", "data-dir": data, "test-share": 0.3, "data-seed": 11}
            folder, model = self.fetch(mesh, job)
            self.assertEqual(model["classes"], list("0123456"))
            self.assertEqual(model["input"], {"shape": [9, 1, 1], "order": "CHW", "channels": "as in the data"})
            self.assertEqual([model["data"][key] for key in ("kind", "test_samples", "test_share", "seed")], ["npy", 14, 0.3, 11])

            self.needs_pytorch()
            self.scores_the_same(model, predict(folder, "--test", data, "--held-back"))
            top_5 = re.findall(r", top-5 (\S+) %", predict(folder, "--test", data, "--held-back", "--top", "5")[1])
            self.assertEqual(top_5, 2 * [f"{100 * model['evaluation']['accuracy_5']:.2f}"])
            code, out, err = predict(folder, "--test", data)
            self.assertEqual(code, 0)
            self.assertIn("% of 40,", out)
            self.assertIn("--held-back", err)
            code, out, err = predict(folder, os.path.join(data, "x.npy"))
            self.assertEqual((code, err, len(out.splitlines())), (0, "", 40))
            self.assertTrue(out.startswith(os.path.join(data, "x.npy") + "[0]\t"), out)


if __name__ == "__main__":
    unittest.main()
