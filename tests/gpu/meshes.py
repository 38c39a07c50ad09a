#!/usr/bin/env python3
"""meshes.py mesh|cifarnet --seconds S [--device N] [--data DIR] [--engines cpu] [--libraries DIR:DIR]: real nodes on loopback, two
of them on one device. TGD and TGCTL name the programs. Prints a line for each thing found: `ok TEXT`, `FAIL TEXT`, `table ROW`;
exit status 1 if one failed. --engines cpu puts all on the processor, to try this file itself."""

import argparse
import os
import pathlib
import re
import signal
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "process"))
from asking import FINAL
from mesh import Mesh
from patience import wait_until

PEER_TIMEOUT = 3  # seconds
SLACK = 1  # beyond it a death may take to be seen
LENET = {"data-train": 4096, "data-test": 512, "global-batch": 48, "digest-every": 20, "evaluate-every": 0, "checkpoint-every": "0s", "start-timeout": "60s"}
CIFARNET = {
    "model": "cifarnet", "global-batch": 128, "optimizer": "adam", "learning-rate": 0.0002, "schedule": "constant", "weight-decay": 0.004, "ema": 0.999, "digest-every": 100,
    "checkpoint-every": "0s", "start-timeout": "60s",
}  # fmt: skip
CIFAR_TRAIN = 50000
ENDING = 8  # seconds that a run takes to stop, at most
MOST_EPOCHS = 60


class Part:
    def __init__(self, options):
        self.options = options
        self.end = time.monotonic() + options.seconds
        self.failed = 0

    def left(self):
        return self.end - time.monotonic()

    def tell(self, word, text):
        self.failed += word == "FAIL"
        print(word, text, flush=True)

    def attempt(self, name, what):
        try:
            self.tell("ok", f"{name}: {what()}")
        except Exception as reason:
            traceback.print_exc()
            self.tell("FAIL", f"{name}: {type(reason).__name__}: {' '.join(str(reason).split())[:300]}")

    def nodes(self, *engines):
        """Settings by node: `cuda` ones on the device, `cpu` ones on the processor."""
        if self.options.engines == "cpu":
            return {i: {"engine": "cpu"} for i in range(len(engines))}
        return {i: {"engine": engine} | ({"device": self.options.device} if engine == "cuda" else {}) for i, engine in enumerate(engines)}


def ended_well(mesh, run, states=("COMPLETED",)):
    """The run's status when all members have ended, with one digest."""
    mesh.wait_ended(run)
    status = mesh.run(run)
    digests = {member["node"]: member["digest"] for member in status["members"]}
    if status["state"] not in states or len(digests) != len(mesh) or len(set(digests.values())) != 1 or None in digests.values():
        raise AssertionError(f"{status['state']}: {status['reason']}; {digests}")
    return status


def devices(mesh):
    """What each node says that it computes with when a run starts."""
    said = []
    for node in mesh.nodes:
        line = next((line for line in node.log_text().splitlines() if " event=run-started " in line), "")
        said.append(f"{node.name}: " + ", ".join(re.findall(r' (?:device|engine)="?([^"=]*)"?(?= \w|$)', line)))
    return "; ".join(said)


def three_nodes(part):
    """Two on the device and one on the processor: one state, bit for bit."""
    with Mesh(3, {"threads": 4, "peer-timeout": "20s"}, per_node=part.nodes("cuda", "cuda", "cpu")) as mesh:
        texts = []
        for gradients, steps in (("ternary", 500), ("float32", 100)):
            begun = time.monotonic()
            run = mesh.start(LENET | {"steps": steps, "gradients": gradients}, patience=max(part.left(), 10))
            status = ended_well(mesh, run)
            texts.append(f"{steps} steps {gradients}, digest {status['digest']} on all 3, {time.monotonic() - begun:.1f} s")
        return "; ".join([*texts, devices(mesh)])


def killed(part):
    """A member on the device is killed: the others name it, go on without it, and hold one state."""
    with Mesh(3, {"threads": 2, "peer-timeout": f"{PEER_TIMEOUT}s"}, per_node=part.nodes("cuda", "cuda", "cpu")) as mesh:
        follower = mesh.follow("start", mesh.job_file(LENET | {"steps": 1000000}), node=0)
        run = follower.first_line()
        mesh.wait_for_step(run, 100)
        mesh[1].signal(signal.SIGKILL)
        died = time.time()
        took = []
        for node in (0, 2):
            left = wait_until(f"{mesh[node].name} goes on without node-b", lambda: mesh.run(run, node=node)["left"])
            took.append(time.time() - died)
            if [one["node"] for one in left] != [mesh[1].name]:
                raise AssertionError(f"{mesh[node].name} says that {left} left")
        if max(took) > PEER_TIMEOUT + SLACK + 1.2:  # and two gatherings of status
            raise AssertionError(f"seen after {took} s")
        mesh.wait_for_step(run, mesh.run(run)["view_step"] + 20)
        mesh.ctl_ok("stop", run)
        follower.finish()
        mesh[1].process.wait()
        states = [(member["node"], member["step"], member["digest"]) for member in mesh.run(run)["members"] if member["node"] != mesh[1].name]
        if len({step for _, step, _ in states}) == 1 and len({digest for *_, digest in states}) != 1:
            raise AssertionError(f"the survivors' states differ: {states}")
        if max(step for _, step, _ in states) - min(step for _, step, _ in states) > 1:
            raise AssertionError(f"the survivors are more than a step apart: {states}")
        # The device serves the next run, with the node back.
        mesh.restart([1])
        mesh.wait_ready()
        ended_well(mesh, mesh.start(LENET | {"steps": 50}, patience=max(part.left(), 10)))
        return f"seen after {max(took):.2f} s, survivors at step and digest {', '.join(f'{step} {digest}' for _, step, digest in states)}; next run in order"


def mesh_part(part):
    part.attempt("two on the device, one on the processor", lambda: three_nodes(part))
    part.attempt("a member on the device is killed", lambda: killed(part))


def cifarnet_part(part):
    data = part.options.data
    job = CIFARNET | ({"data": "cifar10", "data-dir": data} if data else {"data": "fractals", "data-classes": 10, "image-size": 32, "data-train": 5000, "data-test": 1000})
    job |= {"data-train": None, "data-test": None} if data else {}
    samples = CIFAR_TRAIN if data else job["data-train"]
    name = "CIFAR-10" if data else "fractals, no --data was given"

    def train(gradients, seconds):
        """Trains as many epochs as the time allows; the run is stopped then, behind the last evaluation."""
        epoch = samples // job["global-batch"]
        end = time.monotonic() + seconds
        with Mesh(2, {"threads": 4, "peer-timeout": "30s"}, per_node=part.nodes("cuda", "cuda")) as mesh:
            run = mesh.detach(job | {"gradients": gradients, "steps": MOST_EPOCHS * epoch, "evaluate-every": epoch})
            mesh.wait_for_step(run, 1)
            begun = time.monotonic()
            while mesh.run(run)["state"] not in FINAL and time.monotonic() < end - ENDING:
                time.sleep(0.5)
            reached = mesh.run(run)["step"]
            rate = reached * job["global-batch"] / (time.monotonic() - begun)
            mesh.ctl("stop", run)
            status = ended_well(mesh, run, ("COMPLETED", "STOPPED"))
            last = status["evaluation"]
            if last is None:
                raise AssertionError(f"no epoch of {epoch} steps ended in {seconds:.0f} s: step {reached}")
            found = f"accuracy {100 * last['accuracy']:.2f} % after {last['step'] / epoch:.0f} epochs, {rate:.0f} samples/s with evaluations"
            part.tell("table", f"- {name}, {gradients}: {found}, digest {status['digest']} on both at step {status['step']}")
            return found

    part.attempt(f"ternary ({name})", lambda: train("ternary", part.left() / 2))
    part.attempt("float32", lambda: train("float32", part.left()))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("mesh", "cifarnet"))
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--data")
    parser.add_argument("--engines", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--libraries", help="the nodes' library path")
    part = Part(parser.parse_args())
    if part.options.libraries:
        os.environ["LD_LIBRARY_PATH"] = part.options.libraries  # read by the programs that are started from here on
    {"mesh": mesh_part, "cifarnet": cifarnet_part}[part.options.part](part)
    return 1 if part.failed else 0


if __name__ == "__main__":
    sys.exit(main())
