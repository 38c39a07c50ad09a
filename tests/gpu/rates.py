"""Training rates through the interface that a node uses, beside PyTorch's: one case after the other, both within a minute of each
other. PyTorch has its batch on the device and its steps one behind the other; ours comes from the host during the step before,
and every loss goes back there."""

import json
import pathlib
import queue
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
# Model, batch, least ratio to PyTorch's captured step (a CUDA graph), and to its best; share of the time.
CASES = (
    ("lenet", 64, 1.3, None, 1), ("lenet", 1024, 1.3, None, 1), ("cifarnet", 128, 1.3, None, 1), ("cifarnet", 1024, 1.3, None, 1),
    ("alexnet", 128, None, 1.0, 2), ("resnet-50", 64, None, 1.0, 3), ("googlenet", 64, None, 1.0, 3), ("vgg-a", 64, None, 1.0, 3),
)  # fmt: skip
MATHS = ("fp32", "tf32", "bf16")
OURS = 0.8  # seconds of timed steps in each arithmetic
THEIRS = 0.45  # PyTorch's part of a case's time
START = 60  # seconds that PyTorch may take to be there, but no more than a third of all
GRACE = 15  # and a variant that has begun, to end
TITLES = (
    ("model", "batch", "math", "**training**", "of best", "of captured", "PyTorch's best", "which", "captured", "forward, backward", "node's step", "of best"),
    ("model", "batch", "math", "forward, backward", "update", "statistics", "codes", "apply", "node's step"),
)  # fmt: skip
NOTE = (
    "Images per second, then milliseconds. *Training* is forward, backward and an update with momentum on the device, as PyTorch's step is, but that our next batch comes "
    "from the host meanwhile: it is what is judged. A *node's step* is forward, backward, statistics, codes to the host and the update from codes, in the calls that a worker "
    "makes, one after the other: a node's several workers have them beside each other and beside backward. Of PyTorch's variants those that there was time for."
)  # fmt: skip


class Peer:
    """pytorch_rates.py as a process that is asked, started anew when it ends or is late."""

    def __init__(self, environments, log, words=()):
        self.environments, self.log, self.words = environments, log, words
        self.process, self.lines, self.about = None, None, "was not started"

    def start(self, seconds):
        """Until PyTorch says what it is; False where it does not. Kept is the environment in which it does."""
        end = time.monotonic() + seconds
        for environment in list(self.environments):
            self.close()
            self.process = subprocess.Popen(
                [sys.executable, HERE / "pytorch_rates.py", *self.words], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True
            )
            self.lines = queue.Queue()
            threading.Thread(target=self.read, args=(self.process, self.lines), daemon=True).start()
            row = self.take(end)
            self.about = "did not start" if row is None else row.get("about") or row.get("wrong", "")
            if row and "about" in row:
                self.environments = [environment]
                return True
        self.close()
        self.environments = []  # and it is not tried again
        return False

    @staticmethod
    def read(process, lines):
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    def take(self, end):
        """The next row; None if it ends or is late."""
        try:
            line = self.lines.get(timeout=max(end - time.monotonic(), 0.1))
            return None if line is None else json.loads(line)
        except (queue.Empty, ValueError):
            return None

    def ask(self, model, batch, seconds):
        """Rows of what was measured in that time: math, how, images per second."""
        if self.process is None and not self.start(START / 2):
            return []
        end = time.monotonic() + seconds + GRACE
        rows = []
        try:
            self.process.stdin.write(json.dumps({"model": model, "batch": batch, "seconds": seconds}) + "\n")
            self.process.stdin.flush()
        except OSError:
            self.close()
            return [{"math": "fp32", "how": "PyTorch had ended", "rate": 0}]
        while (row := self.take(end)) is not None:
            if (row.get("model"), row.get("batch")) != (model, batch):
                continue
            if row.get("done"):
                return rows
            rows.append(row)
        self.close()
        return rows + [{"math": "fp32", "how": f"PyTorch ended or was late behind {len(rows)} variants", "rate": 0}]

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def ours(bench, log, model, batch, seconds):
    """Times by arithmetic, or why there are none: {"refused": ..} or {"failed": ..}."""
    from parts import followed

    found, last = {}, []

    def line(text):
        try:
            row = json.loads(text)
            found[row["math"]] = row
        except (ValueError, KeyError, TypeError):
            last[:] = [text]

    command = bench.check("rates", "--model", model, "--batch", batch, "--seconds", OURS, *(word for math in MATHS for word in ("--math", math)))
    status = followed(command, bench.environment, seconds, log, line)
    why = {"late": "did not end in time"} if status is None else {"failed": f"ended with {status}: {' '.join(last)}"}
    return {math: found.get(math, why) for math in MATHS}


def ratio(rate, other):
    return rate / other if other else 0


def row_of(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


class Table:
    def __init__(self):
        self.rates, self.times, self.theirs = [], [], []
        self.right, self.wrong, self.missing = [], [], []

    def add(self, case, math, mine, theirs):
        model, batch, captured_least, best_least, _ = case
        name = f"{model} {batch} {math}"
        why = mine.get("refused") or mine.get("failed") or mine.get("late")
        if why:
            (self.missing if "late" in mine or ("refused" in mine and math in why) else self.wrong).append(f"{name}: not run: {' '.join(why.split())[:200]}")
            return
        compute, update, step = (mine[key] for key in ("compute_ms", "update_ms", "step_ms"))
        training = batch / (compute + update) * 1e3
        self.times.append(row_of([model, batch, math, *(f"{mine[f'{key}_ms']:.3f}" for key in ("compute", "update", "statistics", "codes", "apply", "step"))]))
        rows = [row for row in theirs if row["math"] == math and row["rate"] > 0]
        best = max(rows, key=lambda row: row["rate"], default={"rate": 0, "how": "not measured"})
        captured = max((row["rate"] for row in rows if "captured" in row["how"]), default=0)
        to_best, to_captured = ratio(training, best["rate"]), ratio(training, captured)
        self.rates.append(
            row_of([model, batch, math, f"{training:.0f}", f"{to_best:.2f}", f"{to_captured:.2f}", f"{best['rate']:.0f}", best["how"], f"{captured:.0f}",
                    f"{batch / compute * 1e3:.0f}", f"{batch / step * 1e3:.0f}", f"{ratio(batch / step * 1e3, best['rate']):.2f}"])
        )  # fmt: skip
        print(f"  {name}: {training:.0f} img/s, {to_best:.2f} of {best['how']}, {to_captured:.2f} of captured", flush=True)
        judged, least, what = (to_captured, captured_least, "the captured step") if captured_least else (to_best, best_least, "PyTorch's best")
        if judged == 0:
            self.missing.append(f"{name}: {what} was not measured {[row['how'] for row in theirs if row['math'] == math]}; ours {training:.0f} img/s")
        elif judged < least:
            self.wrong.append(f"{name}: {judged:.2f} of {what}, target {least}")
        else:
            self.right.append(f"{name} {judged:.2f}")

    def text(self, about):
        lines = [f"PyTorch: {about}", ""]
        for titles, rows in zip(TITLES, (self.rates, self.times)):
            lines += [row_of(titles), row_of(["---:" if number > 2 or title == "batch" else "---" for number, title in enumerate(titles)]), *rows, ""]
        return [*lines, NOTE, "", *self.theirs]


def measure(bench, log, seconds):
    from parts import Outcome

    end = time.monotonic() + seconds
    table = Table()
    peer = Peer(bench.torch_environments(), log)
    try:
        peer.start(min(START, seconds / 3))
        about = peer.about
        for number, case in enumerate(CASES):
            model, batch, *_, weight = case
            left = end - time.monotonic()
            if left < 5:
                table.missing.append(f"{model} {batch}: no time was left")
                continue
            share = left * weight / sum(each[-1] for each in CASES[number:])
            theirs = peer.ask(model, batch, share * THEIRS)
            mine = ours(bench, log, model, batch, max(min(end - time.monotonic(), 2 * share + 10), 5))
            for math in MATHS:
                table.add(case, math, mine[math], theirs)
            table.theirs += [f"- {model} {batch} {row['math']}, PyTorch {row['how']}: {row['rate']:.0f}" for row in theirs]
    finally:
        peer.close()
    judged = bool(table.right or table.wrong)
    return Outcome("rates", not table.wrong if judged else None, ", ".join(table.right), table.wrong, table.text(about), table.missing)
