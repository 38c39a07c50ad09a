"""Training rates through the interface that a node uses, beside PyTorch's: one case after the other, both within a minute of each
other. PyTorch has its batch on the device and its steps one behind the other; ours comes from the host in every step, and every
loss goes back there."""

import json
import os
import pathlib
import queue
import subprocess
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
# Model, batch, least ratio to PyTorch's captured step (a CUDA graph), and to its best.
CASES = (
    ("lenet", 64, 1.3, None), ("lenet", 1024, 1.3, None), ("cifarnet", 128, 1.3, None), ("cifarnet", 1024, 1.3, None),
    ("alexnet", 128, None, 1.0), ("resnet-50", 64, None, 1.0), ("googlenet", 64, None, 1.0), ("vgg-a", 64, None, 1.0),
)  # fmt: skip
MATHS = ("fp32", "tf32")
OURS = 1.2  # seconds of timed steps, at each precision
REPEATS = 2  # processes, the median of which counts: algorithms are timed anew in each


class Peer:
    """pytorch_rates.py as a process that is asked; it keeps its start to itself."""

    def __init__(self, log):
        environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
        self.process = subprocess.Popen(
            ["python3", HERE / "pytorch_rates.py"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    def ask(self, model, batch, seconds):
        """Rows of what was measured in that time: math, how, images per second."""
        self.process.stdin.write(json.dumps({"model": model, "batch": batch, "seconds": seconds}) + "\n")
        self.process.stdin.flush()
        rows, end = [], time.monotonic() + seconds + 25  # a variant that has begun may end
        while True:
            try:
                line = self.lines.get(timeout=max(end - time.monotonic(), 0.1))
            except queue.Empty:
                return rows + [{"math": "fp32", "how": "PyTorch did not answer in time", "rate": 0}]
            if not line:
                return rows + [{"math": "fp32", "how": "PyTorch ended", "rate": 0}]
            row = json.loads(line)
            if row.get("done"):
                return rows
            rows.append(row)

    def close(self):
        self.process.kill()
        self.process.wait()


def ours(bench, log, model, batch, math, seconds):
    results = []
    for _ in range(REPEATS):
        command = bench.check("rates", "--model", model, "--batch", batch, "--math", math, "--seconds", OURS)
        done = subprocess.run(command, capture_output=True, text=True, env=bench.environment, timeout=seconds)
        log.write(done.stdout + done.stderr)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip() or f"ended with {done.returncode}")
        results.append(json.loads(done.stdout.splitlines()[-1]))
    return sorted(results, key=lambda one: one["step_ms"])[len(results) // 2]


def measure(bench, log, seconds):
    from parts import Outcome

    end = time.monotonic() + seconds
    table = ["| model | batch | math | ours: step | ours: forward, backward | PyTorch's best | of | captured | ratio to best | to captured |", "|---|---:|---|---:|---:|---:|---|---:|---:|---:|"]
    wrong, ratios = [], []
    peer = Peer(log)
    try:
        for number, (model, batch, captured_least, best_least) in enumerate(CASES):
            left = end - time.monotonic()
            if left < 8:
                wrong.append(f"{model} {batch}: no time was left")
                continue
            share = left / (len(CASES) - number)
            theirs = peer.ask(model, batch, share * 0.55)
            for math in MATHS:
                rows = [row for row in theirs if row["math"] == math and row["rate"] > 0]
                try:
                    mine = ours(bench, log, model, batch, math, max(end - time.monotonic(), 5))
                except (RuntimeError, subprocess.TimeoutExpired, ValueError) as reason:
                    wrong.append(f"{model} {batch} {math}: {' '.join(str(reason).split())[:200]}")
                    continue
                step, compute = (batch / mine[key] * 1e3 for key in ("step_ms", "compute_ms"))
                if not rows:
                    wrong.append(f"{model} {batch} {math}: PyTorch was not measured {[row['how'] for row in theirs if row['rate'] == 0]}; ours {step:.0f}")
                    table.append(f"| {model} | {batch} | {math} | {step:.0f} | {compute:.0f} | | | | | |")
                    continue
                best = max(rows, key=lambda row: row["rate"])
                captured = max((row["rate"] for row in rows if "captured" in row["how"]), default=0)
                to_best, to_captured = step / best["rate"], step / captured if captured else 0
                table.append(f"| {model} | {batch} | {math} | {step:.0f} | {compute:.0f} | {best['rate']:.0f} | {best['how']} | {captured:.0f} | {to_best:.2f} | {to_captured:.2f} |")
                print(f"  {model} {batch} {math}: {step:.0f} img/s, PyTorch {best['rate']:.0f} ({best['how']}), ratio {to_best:.2f}, to captured {to_captured:.2f}", flush=True)
                ratios.append(f"{model} {batch} {math} {to_best:.2f}")
                if captured_least and to_captured < captured_least:
                    wrong.append(f"{model} {batch} {math}: {to_captured:.2f} of the captured step, target {captured_least}")
                if best_least and to_best < best_least:
                    wrong.append(f"{model} {batch} {math}: {to_best:.2f} of PyTorch's best, target {best_least}")
            table += [f"| {model} | {batch} | {row['math']} | | | {row['rate']:.0f} | {row['how']} | | | |" for row in theirs]
    finally:
        peer.close()
    table += ["", "Images per second. The step of ours takes its batch from the host and ends with an update from ternary codes, which went to the host and back."]
    return Outcome("rates", not wrong and bool(ratios), "to PyTorch's best: " + ", ".join(ratios), wrong, table)
