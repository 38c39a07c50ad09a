#!/usr/bin/env python3
"""The same death under torchrun: three processes train a small model with Gloo on this machine, one of them is killed with
its agent, and the time until the others have taken their next step is printed, or that it did not come. For comparison with
tests/hostile/kills. Needs PyTorch (Debian: python3-torch).

    /usr/bin/python3 tests/lab/elastic.py [--patience 180]
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

NODES = 3
BATCH = 16


def worker(folder):
    """LeNet's size of a model, random samples; each step is written down, and the state with it, from which it goes on."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))
    path = os.path.join(folder, "state.pt")
    step = 0
    if os.path.exists(path):
        step, state = torch.load(path)
        model.load_state_dict(state)
    dist.barrier()
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    name = os.environ["ELASTIC_NODE"]
    while True:
        samples, labels = torch.randn(BATCH // dist.get_world_size(), 1, 28, 28), torch.randint(10, (BATCH // dist.get_world_size(),))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(ddp(samples), labels).backward()
        optimizer.step()
        step += 1
        if dist.get_rank() == 0:
            torch.save((step, model.state_dict()), path + ".new")
            os.replace(path + ".new", path)
        with open(os.path.join(folder, f"steps-{name}"), "a") as file:
            file.write(f"{time.time()} {step} {dist.get_world_size()} {os.getpid()}\n")


def steps(folder, name):
    try:
        with open(os.path.join(folder, f"steps-{name}")) as file:
            return [line.split() for line in file.read().split("\n")[:-1]]
    except FileNotFoundError:
        return []


def wait(what, condition, patience):
    until = time.time() + patience
    while time.time() < until:
        if value := condition():
            return value
        time.sleep(0.02)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--patience", type=float, default=180)
    parser.add_argument("--worker")
    options = parser.parse_args()
    if options.worker:
        return worker(options.worker)
    import torch

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tempfile.mkdtemp(prefix="elastic-")
    agents = {}
    try:
        for name in "abc":  # redirects and tee: PyTorch 1.13 under Python 3.11 takes neither 0, the default, nor 3
            command = [sys.executable, "-m", "torch.distributed.run", f"--nnodes=2:{NODES}", "--nproc_per_node=1", "--rdzv_backend=c10d",
                       f"--rdzv_endpoint=127.0.0.1:{port}", "--rdzv_id=tgd", "--max_restarts=3", "--redirects=1", "--tee=1", "--log_dir", folder, __file__, "--worker", folder]
            log = open(os.path.join(folder, f"log-{name}"), "w")
            agents[name] = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | {"ELASTIC_NODE": name, "OMP_NUM_THREADS": "1"}, start_new_session=True)
            if name == "a":  # it holds the store
                time.sleep(3)
        began = wait("all train", lambda: all(len(steps(folder, name)) > 20 and steps(folder, name)[-1][2] == str(NODES) for name in "abc"), 180)
        if not began:
            sys.exit(f"torchrun did not begin with {NODES} processes within 180 s; logs in {folder}")
        pid = int(steps(folder, "c")[-1][3])
        death = time.time()
        os.kill(pid, signal.SIGKILL)
        agents["c"].kill()
        before = {name: steps(folder, name)[-1] for name in "ab"}
        def went_on():
            rows = {name: [row for row in steps(folder, name) if float(row[0]) > death and row[2] == str(NODES - 1)] for name in "ab"}
            return rows if all(rows.values()) else None
        rows = wait("the others go on", went_on, options.patience)
        what = f"torchrun {torch.__version__} (elastic, c10d, gloo), {NODES} processes, one killed with its agent"
        if rows is None:
            print(f"{what}: no next step within {options.patience:g} s")
        else:
            print(f"{what}: next step after {max(float(one[0][0]) for one in rows.values()) - death:.1f} s, from step {before['a'][1]} on with step {rows['a'][0][1]}, in new processes: {rows['a'][0][3] != before['a'][3]}")
    finally:
        for agent in agents.values():
            try:
                os.killpg(agent.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for name in "abc":
            for row in steps(folder, name)[-1:]:
                try:
                    os.kill(int(row[3]), signal.SIGKILL)
                except ProcessLookupError:
                    pass


if __name__ == "__main__":
    main()
