"""Runs that are interrupted and go on, for tests: the recipes, and what has to be equal at their end."""

import json
import os
import signal

from files import read_metrics, write_cifar10
from patience import wait_until

# Each has a state of its own kind beside parameters: a slot, two slots and drawn pictures, running statistics.
RECIPES = {
    "lenet": {"optimizer": "momentum", "steps": 80},
    "cifarnet": {"model": "cifarnet", "data": "cifar10", "optimizer": "adam", "learning-rate": 0.001, "global-batch": 12, "steps": 40},
    "resnet-20": {"model": "resnet-20", "data": "cifar10", "optimizer": "momentum", "global-batch": 8, "steps": 20},
}


def job_of(name, folder, **changes):
    """The recipe, with data in this folder; a checkpoint after some steps."""
    data = os.path.join(folder, "cifar10")
    if not os.path.isdir(data):
        write_cifar10(data, per_batch=16)
    job = {"checkpoint-every": "200ms", "evaluate-every": 10, "data-train": 256} | RECIPES[name]
    if "data" in job:
        job |= {"data-dir": data, "data-train": None, "data-test": None}
    return job | {key.replace("_", "-"): value for key, value in changes.items()}


def kill_all(mesh, nodes=None):
    for node in mesh.nodes if nodes is None else nodes:
        node.signal(signal.SIGKILL)
    for node in mesh.nodes if nodes is None else nodes:
        node.wait()


def start_all(mesh):
    for node in mesh.nodes:
        node.start()
    mesh.wait_ready()


def wait_for_checkpoint(mesh, run, step=1, nodes=None):
    """Until each of these, by default of all nodes, has written one of that step, or a later one."""
    nodes = mesh.nodes if nodes is None else nodes

    def newest(node):
        steps = [int(line.split(" step=", 1)[1].split()[0]) for line in node.log_text().splitlines() if "event=checkpoint " in line and f"run={run} " in line]
        return max(steps, default=0)

    wait_until(lambda: f"checkpoints of {run}: {[newest(node) for node in nodes]}", lambda: all(newest(node) >= step for node in nodes))


def whole(mesh, run):
    """The digest that all nodes tell of a run that has ended, with a line of metrics for each of its steps."""
    shown = mesh.run(run)
    digests = {member["node"]: member["digest"] for member in shown["members"]}
    assert len(set(digests.values())) == 1, f"{run}: {digests}"
    for node in mesh.nodes:
        steps = [row["step"] for row in read_metrics(node.run_file(run, "metrics.jsonl"))]
        assert steps == list(range(1, shown["step"] + 1)), f"{run} on {node.name}: metrics of steps {steps}"
    return shown["digest"]


def intervals(node, run):
    with open(node.run_file(run, "views.jsonl")) as file:
        return [json.loads(line) for line in file]
