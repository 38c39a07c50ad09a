"""How a run learns: a batch in parts, and from given parameters."""

import array
import json
import math
import os
import random
import shutil
import subprocess
import unittest

from files import read_metrics, read_safetensors, write_npy, write_safetensors
from mesh import Mesh

PYTHON = os.environ.get("TGD_PYTORCH", "/usr/bin/python3")
# Reads cases from stdin, trains each from the same parameters on all samples at once, and prints the parameters.
PYTORCH = """
import json, math, sys
import torch
asked = json.load(sys.stdin)
x, y = torch.tensor(asked["x"]), torch.tensor(asked["y"])
answers = []
for case in asked["cases"]:
    p = {name: torch.nn.Parameter(torch.tensor(values).reshape(shape)) for name, (shape, values) in asked["parameters"].items()}
    for name in case["frozen"]:
        p[name].requires_grad = False
    trained = {name: one for name, one in p.items() if one.requires_grad}
    groups = [{"params": [one for name, one in trained.items() if name.endswith("weight")], "weight_decay": case["decay"]},
              {"params": [one for name, one in trained.items() if name.endswith("bias")], "weight_decay": 0}]
    optimizer = torch.optim.AdamW(groups, lr=case["rate"], eps=case["epsilon"])
    rule = torch.optim.lr_scheduler
    falls = rule.CosineAnnealingLR(optimizer, case["steps"], case["floor"]) if case["cosine"] else rule.LambdaLR(optimizer, lambda step: 1)
    for step in range(case["steps"]):
        hidden = torch.relu(x @ p["fc1.weight"].T + p["fc1.bias"])
        weight = torch.tensor(case["weights"]) if case["weights"] else None
        loss = torch.nn.functional.cross_entropy(hidden @ p["fc2.weight"].T + p["fc2.bias"], y, weight)
        optimizer.zero_grad()
        loss.backward()
        plain = [group["lr"] for group in optimizer.param_groups]
        for group in optimizer.param_groups:
            group["lr"] *= min(1, (step + 1) / max(case["warm_up"], 1))
        optimizer.step()
        for group, rate in zip(optimizer.param_groups, plain):
            group["lr"] = rate
        falls.step()
    answers.append({name: one.detach().flatten().tolist() for name, one in p.items()})
json.dump(answers, sys.stdout)
"""

# Floats, so that losses can be compared over some steps.
JOB = {"gradients": "float32", "steps": 6, "global-batch": 16, "ema": 0}


class Learning(unittest.TestCase):
    def end(self, mesh, job):
        """The run as it ended, and its metrics; all members hold one state."""
        run = mesh.start(job)
        mesh.wait_ended(run)
        ended = mesh.run(run)
        self.assertEqual(ended["state"], "COMPLETED", ended)
        digests = {member["node"]: member["digest"] for member in ended["members"]}
        self.assertEqual(len(set(digests.values())), 1, f"run {run}: {digests}")
        return ended, read_metrics(mesh[0].run_file(run, "metrics.jsonl"))

    def test_a_batch_in_parts(self):
        with Mesh(2) as mesh:
            whole, losses = self.end(mesh, JOB)
            parts, losses_of_parts = self.end(mesh, JOB | {"micro-batch": 2})
            for one, other in zip(losses, losses_of_parts):
                self.assertAlmostEqual(one["loss"], other["loss"], delta=1e-4 * one["loss"])
            self.assertNotEqual(whole["digest"], parts["digest"], "sums round in another order: were there parts?")
            same, _ = self.end(mesh, JOB | {"micro-batch": 8})
            self.assertEqual(same["digest"], whole["digest"], "the whole of a member's part at once")

            # A last part of one sample, on one node only: 9 and 8 of 17.
            _, losses = self.end(mesh, JOB | {"global-batch": 17})
            _, losses_of_parts = self.end(mesh, JOB | {"global-batch": 17, "micro-batch": 4})
            for one, other in zip(losses, losses_of_parts):
                self.assertAlmostEqual(one["loss"], other["loss"], delta=1e-4 * one["loss"])
            mesh.ctl("start", mesh.job_file(JOB | {"initial": "a.safetensors"})).refuses(2, "node-", "is relative to data-dir, and this node has none")
            answer = mesh.ctl("start", mesh.job_file({"compute": "replay", "micro-batch": 4}))
            answer.refuses(2, "micro-batch = 4 needs compute = train")

    def test_from_given_parameters(self):
        """What was fetched is trained on, by nodes that each have a file of their own."""
        with Mesh(2) as mesh:
            first, losses = self.end(mesh, JOB | {"steps": 100})
            fetched = os.path.join(mesh.fetch(first["id"]), "model.safetensors")
            folders = [os.path.join(mesh.folder, f"data-{index}") for index in range(2)]
            for index, folder in enumerate(folders):
                os.makedirs(folder)
                shutil.copy(fetched, os.path.join(folder, "start.safetensors"))
                mesh.configure(index, data_dir=folder)
            mesh.restart()
            job = JOB | {"initial": "start.safetensors", "seed": 9}
            drawn, drawn_losses = self.end(mesh, job | {"initial": None})
            second, more_losses = self.end(mesh, job)
            self.assertLess(more_losses[0]["loss"], 0.5 * drawn_losses[0]["loss"])
            records = {run["id"]: mesh[0].record(run["id"]) for run in (first, drawn, second)}
            self.assertNotEqual(records[second["id"]]["initial_digest"], records[drawn["id"]]["initial_digest"])
            log = mesh.ctl_ok("logs", second["id"]).out
            self.assertIn(f"parameters from {folders[0]}/start.safetensors", log)
            by_path, _ = self.end(mesh, job | {"initial": fetched})
            self.assertEqual(by_path["digest"], second["digest"])

            # Another number of classes: the last layer is new.
            tensors, _ = read_safetensors(fetched)
            for name in ("fc2.weight", "fc2.bias"):
                shape, values = tensors[name]
                tensors[name] = ((7, *shape[1:]), values[: len(values) // 10 * 7])
            for folder in folders:
                write_safetensors(os.path.join(folder, "seven.safetensors"), tensors)
            seven, _ = self.end(mesh, job | {"initial": "seven.safetensors"})
            self.assertIn("fc2.weight (10x500, in the file 7x500), fc2.bias (10, in the file 7)", mesh.ctl_ok("logs", seven["id"]).out)

            # Mistakes: one node's file is another one, does not fit, is not there.
            write_safetensors(os.path.join(folders[1], "start.safetensors"), tensors)
            mesh.ctl("start", mesh.job_file(job)).refuses(2, "initial states differ", "if the job sets initial")
            answer = mesh.ctl("start", mesh.job_file(job | {"model": "lenet", "initial": "nothing"}))
            answer.refuses(2, "node-", "data-", "nothing", "No such file")
            tensors["conv1.weight"] = ((20, 1, 5, 4), tensors["conv1.weight"].values[:400])
            for folder in folders:
                write_safetensors(os.path.join(folder, "misfit.safetensors"), tensors)
            answer = mesh.ctl("start", mesh.job_file(job | {"initial": "misfit.safetensors"}))
            answer.refuses(2, "misfit.safetensors has conv1.weight of 20x1x5x4 where 20x1x5x5 is needed")

            # What is no file of tensors is not waited for, and what is not finite would end in the saved model.
            os.mkfifo(os.path.join(mesh.folder, "pipe"))
            with open(os.path.join(mesh.folder, "x.pt"), "wb") as file:
                file.write(b"PK\3\4" + bytes(100))
            tensors, _ = read_safetensors(fetched)
            tensors["fc1.weight"].values[17] = float("nan")
            write_safetensors(os.path.join(mesh.folder, "nan"), tensors)
            for name, words in (("pipe", "it is not a regular file"), ("x.pt", "safetensors.torch.save_file(model.state_dict()"),
                                ("nan", "a value that is not finite in fc1.weight, element 17")):
                file = mesh.job_file(job | {"initial": os.path.join(mesh.folder, name)})
                mesh.ctl("start", file, "--dry-run").refuses(2, "node-a: initial: ", words)
                mesh.ctl("start", file).refuses(2, words)
            mesh.ctl_ok("start", mesh.job_file(JOB), "--dry-run")

    def test_as_pytorch(self):
        """AdamW, cosine, warm-up, frozen layers and class weights: the parameters that PyTorch comes to on the same samples."""
        if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
            self.skipTest(f"{PYTHON} (TGD_PYTORCH names another) has no torch")
        samples, features, hidden, classes = 24, 6, 8, 3
        draw = random.Random(5)
        x = array.array("f", (draw.gauss(0, 1) for _ in range(samples * features)))
        y = [draw.randrange(classes) for _ in range(samples)]
        shapes = {"fc1.weight": (hidden, features), "fc1.bias": (hidden,), "fc2.weight": (classes, hidden), "fc2.bias": (classes,)}
        start = {name: (shape, array.array("f", (draw.uniform(-0.5, 0.5) for _ in range(math.prod(shape))))) for name, shape in shapes.items()}
        # Each step takes all samples, so their order does not matter, and the sum of the weights by which PyTorch divides is
        # their number. A moment near 0 is divided by no less than epsilon:
        # with PyTorch's 1e-8 the rounding of a gradient would decide the sign of some first steps.
        case = {"rate": 0.05, "epsilon": 1e-3, "decay": 0.3, "steps": 20, "cosine": False, "floor": 0, "warm_up": 0, "frozen": [], "weights": []}
        balanced = [1 / y.count(label) for label in range(classes)]
        cases = [case | {"steps": 1}, case, case | {"cosine": True}, case | {"cosine": True, "floor": 0.01, "warm_up": 7},
                 case | {"warm_up": 30}, case | {"frozen": ["fc1.weight", "fc1.bias"]}, case | {"frozen": ["fc2.weight"]},
                 case | {"steps": 1, "weights": [1, 4, 0.25]}, case | {"weights": [1, 4, 0.25]}, case | {"weights": balanced}]
        asked = {"x": [list(x[i : i + features]) for i in range(0, len(x), features)], "y": y, "cases": cases,
                 "parameters": {name: (shape, list(values)) for name, (shape, values) in start.items()}}
        theirs = json.loads(subprocess.run([PYTHON, "-c", PYTORCH], input=json.dumps(asked), capture_output=True, text=True, check=True).stdout)
        with Mesh(2, per_node={0: {"kernels": "scalar"}}) as mesh:
            write_safetensors(os.path.join(mesh.folder, "start.safetensors"), start)
            for part in ("train", "test"):
                write_npy(os.path.join(mesh.folder, f"x_{part}.npy"), "f4", (samples, features), x)
                write_npy(os.path.join(mesh.folder, f"y_{part}.npy"), "i8", (samples,), y)
            job = JOB | {"model": "mlp", "hidden": hidden, "data": "npy", "data-dir": mesh.folder, "data-train": None, "data-test": None, "normalization": "none",
                         "initial": os.path.join(mesh.folder, "start.safetensors"), "global-batch": samples, "optimizer": "adamw"}
            for one, expected in zip(cases, theirs):
                run, _ = self.end(mesh, job | {"learning-rate": one["rate"], "epsilon": one["epsilon"], "weight-decay": one["decay"], "steps": one["steps"],
                                               "schedule": "cosine" if one["cosine"] else "constant", "schedule-floor": one["floor"],
                                               "warm-up": one["warm_up"], "freeze": ",".join(one["frozen"]),
                                               "class-weights": "balanced" if one["weights"] is balanced else ",".join(map(str, one["weights"])) or "none"})
                tensors, _ = read_safetensors(os.path.join(mesh.fetch(run["id"]), "model.safetensors"))
                for name, values in expected.items():
                    # A parameter moves by 0.05 a step. float32 sums of 24 samples differ by 1e-7 or so, which the division
                    # by at least 1e-3 makes 1e-4 of a step at most; seen: less than 1e-6.
                    for ours, other in zip(tensors[name].values, values, strict=True):
                        self.assertAlmostEqual(ours, other, delta=2e-6, msg=f"{name}, {one}")
                    moved = tensors[name].values != start[name][1]
                    self.assertEqual(moved, name not in one["frozen"], f"{name}, {one}")
            answer = mesh.ctl("start", mesh.job_file(job | {"class-weights": "1,2"}))
            answer.refuses(2, "class-weights has 2 numbers, and the data have 3 classes")

    def test_frozen_layers(self):
        """The same bits however gradients travel; less is sent; mistakes are named."""
        with Mesh(3) as mesh:
            job = {"model": "resnet-20", "data": "fractals", "image-size": 32, "data-classes": 3, "data-train": 24, "data-test": 12, "steps": 4, "global-batch": 12,
                   "ema": 0.9, "optimizer": "adamw", "weight-decay": 0.1, "digest-every": 1}
            frozen = job | {"freeze": "conv1.,bn1.,layer1.,layer2.,layer3.1"}
            whole, _ = self.end(mesh, job)
            ways = [self.end(mesh, frozen | way)[0] for way in ({"exchange": "direct", "coding": "raw"}, {"exchange": "sharded", "bucket-parameters": 1000})]
            self.assertEqual(len({run["digest"] for run in ways}), 1, ways)
            self.assertNotEqual(ways[0]["digest"], whole["digest"])
            self.assertLess(ways[1]["sent_bytes_per_step"], 0.75 * whole["sent_bytes_per_step"])
            start, _ = read_safetensors(os.path.join(mesh.fetch(self.end(mesh, frozen | {"steps": 1, "learning-rate": 1e-30})[0]["id"]), "model.safetensors"))
            for file in ("model.safetensors", "model-raw.safetensors"):
                tensors, _ = read_safetensors(os.path.join(mesh.fetch(ways[1]["id"]), file))
                for name, (_, values) in tensors.items():
                    stays = name.startswith(tuple(frozen["freeze"].split(","))) and ".running_" not in name
                    self.assertEqual(values == start[name].values, stays, f"{name} in {file}")
            mesh.ctl("start", mesh.job_file(job | {"freeze": "layer9"})).refuses(2, "no parameter of resnet-20 has a name that begins with layer9", "conv1, fc")
            mesh.ctl("start", mesh.job_file(job | {"freeze": "conv1,bn1,layer,fc"})).refuses(2, "freeze leaves no parameter of resnet-20 to train")


if __name__ == "__main__":
    unittest.main()
