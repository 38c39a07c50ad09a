"""The parts of tests/gpu/run. Each ends within its time and gives an Outcome; one that fails stops no other."""

import importlib.metadata
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import types

import bundle

ROOT = bundle.ROOT
HERE = pathlib.Path(__file__).resolve().parent
CHECK = "tests/gpu/tgd_gpu_check"
CRASHES = 8  # that a list of checks is taken up again after
LEAST = 5  # seconds that it makes sense to go on with
LEAST_CIFARNET = 40  # seconds: two runs with an epoch each, their starts and ends
SILENCE = 30  # seconds
LOST = 4  # exit status: the device was lost to the process
RESERVE = 15  # seconds before the end in which no check is begun
# Where CUDA's libraries lie if the loader does not know them: the toolkit's, or those that came with PyTorch.
TOOLKIT = ("/usr/local/cuda/lib64", "/usr/local/cuda/extras/CUPTI/lib64")
SANITIZERS = ("compute-sanitizer", "/usr/local/cuda/bin/compute-sanitizer", "/usr/local/cuda/compute-sanitizer/compute-sanitizer")


class Outcome:
    """right: False what was judged is wrong, None nothing was judged. missing: what of the part was not run or not judged."""

    def __init__(self, name, right, text, wrong=(), table=(), missing=()):
        self.name, self.right, self.text, self.wrong, self.table, self.missing = name, right, text, list(wrong), list(table), list(missing)
        self.seconds = 0.0

    @property
    def passed(self):
        """True, False, or None where nothing failed but not all was judged."""
        return False if self.right is False or self.wrong else None if self.right is None or self.missing else True

    def word(self):
        return {True: "pass", False: "FAIL", None: "in part" if self.right else "not judged" if self.missing else "not run"}[self.passed]

    def line(self):
        first = f"; {self.wrong[0]}" if self.wrong else f"; not judged: {self.missing[0]}" if self.missing else ""
        return f"{self.name:<10} {self.word():<10} {self.text}{first[:200]} ({self.seconds:.0f} s)"

    def as_dict(self):
        return vars(self) | {"passed": self.passed}


class Bench:
    """The programs, and the environment that they run in."""

    def __init__(self, options):
        self.options = options
        self.build = self.find_build(options.build)
        self.module = self.build / "engine/tgd-cuda.so"
        self.torch_versions, torch_folders = find_torch()
        carried = self.build / "lib"
        folders = [options.libraries, str(carried) if carried.is_dir() else "", *TOOLKIT]
        theirs = os.environ.get("LD_LIBRARY_PATH", "")
        self.libraries = self.joined([*folders, theirs])
        self.found = self.needed()
        if None in self.found.values():
            self.libraries = self.joined([*folders, theirs, *torch_folders])
            self.found = self.needed()
        self.environment = {
            **os.environ, "LD_LIBRARY_PATH": self.libraries, "OMP_WAIT_POLICY": "passive", "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        }  # fmt: skip
        self.cupti = next((str(path) for folder in [*TOOLKIT, *torch_folders] for path in sorted(pathlib.Path(folder).glob("libcupti.so*"))), "libcupti.so")
        self.about = self.ask_module()

    @staticmethod
    def find_build(given):
        for build in (given, ROOT / bundle.CARRIED, ROOT / "build/cuda"):
            if build is not None and (build / CHECK).exists():
                return build.resolve()
        print("there is no tgd_gpu_check in build/cuda: cmake --preset cuda && ninja -C build/cuda tgd tgctl tgd_gpu_check tgd_cuda", file=sys.stderr)
        sys.exit(2)

    @staticmethod
    def joined(folders):
        return ":".join(folder for folder in folders if folder)

    def program(self, name):
        return str(self.build / name)

    def needed(self):
        """CUDA's libraries that the module names: where the loader finds each, or None."""
        try:
            said = subprocess.run(["ldd", self.module], capture_output=True, text=True, env={**os.environ, "LD_LIBRARY_PATH": self.libraries}).stdout
        except OSError:
            return {"ldd": None}
        return {name: None if path == "not" else path for name, path in re.findall(r"^\s*(libcu\S+) => (\S+)", said, re.M)}

    def ask_module(self):
        try:
            done = subprocess.run(self.check("about"), capture_output=True, text=True, timeout=60, env=self.environment)
        except subprocess.TimeoutExpired:
            return "does not answer"
        return (done.stdout or done.stderr or f"ended with {done.returncode}").strip()

    def check(self, part, *more):
        return [self.program(CHECK), part, "--module", str(self.module), "--device", str(self.options.device), *map(str, more)]

    def torch_environments(self):
        """That PyTorch is tried in: the caller's, with the same device; and without a library path, since one that begins with
        the system's folder gives it another cuDNN than its own."""
        devices = [each for each in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if each]
        number = self.options.device
        device = devices[number] if number < len(devices) else str(number)
        own = {**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": device}
        without = {name: value for name, value in own.items() if name != "LD_LIBRARY_PATH"}
        return [own, without] if own != without else [own]


def find_torch():
    """The versions of this Python's PyTorch and of what came with it, and the folders of those libraries; nothing is imported."""
    found = importlib.util.find_spec("torch")
    if found is None or not found.submodule_search_locations:
        return "", []
    site = pathlib.Path(found.submodule_search_locations[0]).parent
    versions = []
    for package in ("torch", "torchvision", "nvidia-cudnn-cu13", "nvidia-cublas", "nvidia-cudnn-cu12", "nvidia-cublas-cu12"):
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            pass
    return ", ".join(versions), [str(folder) for folder in sorted((site / "nvidia").glob("*/lib"))]


def followed(command, environment, seconds, log, line, silence=None):
    """Runs a program, gives line() each of its lines; its exit status, or None where it had to be killed: at the end of its time, or
    where it printed nothing for as long as silence."""
    process = subprocess.Popen(
        [str(word) for word in command], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", start_new_session=True,
    )  # fmt: skip
    late = threading.Event()

    def end():
        late.set()
        os.killpg(process.pid, 9)

    last = time.monotonic() + max(seconds, 1)

    def started():
        left = max(last - time.monotonic(), 0)
        clock = threading.Timer(min(left, silence or left), end)
        clock.start()
        return clock

    clock = started()
    try:
        for text in process.stdout:
            log.write(text)
            line(text.rstrip("\n"))
            if silence:
                clock.cancel()
                clock = started()
        status = process.wait()
    finally:
        clock.cancel()
        log.flush()
    return None if late.is_set() else status


class Checks:
    """A list of checks of tgd_gpu_check, taken up again behind one that ends the process."""

    def __init__(self, bench, log, seconds):
        self.bench, self.log, self.end = bench, log, time.monotonic() + seconds
        self.right, self.wrong, self.missing = [], [], []  # name and text of each
        self.label = ""
        self.begun, self.done, self.last = None, [], ""

    def line(self, text):
        begin = re.match(r"begin (\S+)$", text)
        found = re.match(r"(ok|FAIL|none) (\S+): (.*)$", text)
        if begin:
            self.begun = begin[1]
        elif found:
            self.begun = None
            self.found({"ok": self.right, "FAIL": self.wrong, "none": self.missing}[found[1]], found[1], found[2], found[3])
        elif text:
            self.last = text

    def found(self, those, word, name, text):
        self.done.append(name)
        those.append((self.label + name, text))
        print(f"  {word} {self.label}{name}: {text[:200]}", flush=True)

    def run(self, part, *more, label="", share=1.0, silence=SILENCE):
        """share: of the time that is left. silence: seconds that one check may take at least, if there are as many. label: before the names, the arithmetic where it is not float32."""
        self.label, self.done = label, []
        end = time.monotonic() + share * (self.end - time.monotonic())
        for _ in range(CRASHES):
            left = end - time.monotonic()
            # The program leaves out what it has no time for; one that does not come back is ended.
            command = self.bench.check(part, "--seconds", f"{max(left - RESERVE, left / 2):.0f}", *more, *(word for name in self.done for word in ("--skip", name)))
            self.begun = None
            status = followed(command, self.bench.environment, left, self.log, self.line, max(left / 2, silence))
            if status in (0, 1, 3):
                return
            if status == LOST:
                continue
            if self.begun is None and status == 2 and label and label.strip() in self.last:  # this module, or device, lacks the arithmetic
                self.missing.append((f"{label}{part}", f"not run: {self.last}"))
                return
            if self.begun is None:
                those, why = (self.missing, "not run: did not end in time") if status is None else (self.wrong, f"ended with {status}: {self.last}")
                those.append((f"{label}{part}", why))
                return
            if status is not None:
                self.found(self.wrong, "FAIL", self.begun, f"ended the process ({status}): {self.last}")
            else:
                self.found(self.missing, "none", self.begun, "not run: did not end in time")
                if end - time.monotonic() < LEAST:
                    return
        self.missing.append((f"{label}{part}", f"not run: what was left, since the process ended {CRASHES} times"))

    def outcome(self, name):
        count = len(self.right) + len(self.wrong)
        texts = [[f"{one}: {why}" for one, why in those] for those in (self.wrong, self.missing)]
        return Outcome(name, not self.wrong if count else None, f"{len(self.right)} of {count} checks", texts[0], missing=texts[1])


def run(name, bench, log, seconds):
    try:
        return PARTS[name](bench, log, seconds)
    except Exception as reason:  # a part that cannot go on
        traceback.print_exc(file=log)
        return Outcome(name, False, f"{type(reason).__name__}: {str(reason).strip().splitlines()[0] if str(reason).strip() else ''}"[:300])


def kernels(bench, log, seconds):
    checks = Checks(bench, log, seconds)
    checks.run("kernels")
    return checks.outcome("kernels")


def bandwidth(bench, log, seconds):
    checks = Checks(bench, log, seconds)
    checks.run("bandwidth", "--cupti", bench.cupti)
    outcome = checks.outcome("bandwidth")
    lines = [(name.removeprefix("bandwidth."), text) for name, text in checks.right + checks.wrong + checks.missing]
    outcome.table = ["| kernel | |", "|---|---|"] + [f"| {name} | {text} |" for name, text in lines]
    ratios = [f"{name} {found[1]}" for name, text in lines if (found := re.search(r"([\d.]+) of the copy", text))]
    outcome.text += ": " + ", ".join(ratios)
    return outcome


def contract(bench, log, seconds):
    checks = Checks(bench, log, seconds)
    checks.run("contract")
    outcome = checks.outcome("contract")
    outcome.table = [f"- {name}: {text}" for name, text in checks.right if re.search("limits|out_of_memory", name)]
    return outcome


def networks(bench, log, seconds):
    """Strict float32; then the small ones, and one whole, in tf32 and bf16."""
    checks = Checks(bench, log, seconds)
    checks.run("networks", share=0.8)
    counts = [f"{len(checks.right)} in float32"]
    for math, share in (("tf32", 0.5), ("bf16", 1.0)):
        before = len(checks.right)
        checks.run("networks", "--math", math, "--only", "networks.small.convolution", "--only", "networks.small.dense", "--only", "networks.lenet", label=f"{math} ", share=share)
        counts.append(f"{len(checks.right) - before} in {math}")
    outcome = checks.outcome("networks")
    outcome.text += f", {', '.join(counts)}"
    outcome.table = ["| network | |", "|---|---|"] + [f"| {name.replace('networks.', '')} | {text} |" for name, text in checks.right if "small" not in name]
    return outcome


def mesh(bench, log, seconds):
    return whole_runs("mesh", bench, log, seconds)


def cifarnet(bench, log, seconds):
    if seconds < LEAST_CIFARNET:
        return Outcome("cifarnet", None, f"{seconds:.0f} s were left, {LEAST_CIFARNET} are needed")
    return whole_runs("cifarnet", bench, log, seconds, *(("--data", bench.options.data.resolve()) if bench.options.data else ()))


def whole_runs(name, bench, log, seconds, *more):
    """Real nodes, in a process of its own (meshes.py): the last line that begins with its word is the summary."""
    found = {"ok": [], "FAIL": [], "table": []}

    def line(text):
        print(f"  {text[:230]}", flush=True)
        word, _, rest = text.partition(" ")
        if word in found:
            found[word].append(rest)

    # The library path is for the nodes alone: the carried libraries may be older than what Python's own modules need.
    environment = {
        **os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "TGD": bench.program("daemon/tgd"), "TGCTL": bench.program("ctl/tgctl"), "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    command = [sys.executable, HERE / "meshes.py", name, "--seconds", f"{seconds - 8:.0f}", "--device", bench.options.device, "--libraries", bench.libraries, *more]
    status = followed(command, environment, seconds, log, line)
    missing = ["did not end in time"] if status is None else []
    if status is not None and not found["FAIL"] and not (status == 0 and found["ok"]):
        found["FAIL"].append(f"ended with {status}")
    return Outcome(name, False if found["FAIL"] else True if found["ok"] else None, "; ".join(found["ok"]), found["FAIL"], found["table"], missing)


def rates(bench, log, seconds):
    import rates as module

    return module.measure(bench, log, seconds)


def sanitizer(bench, log, seconds):
    tool = next((found for path in SANITIZERS if (found := shutil.which(path))), None)
    if tool is None:
        return Outcome("sanitizer", None, "no compute-sanitizer on this machine (it comes with the CUDA Toolkit)")
    end = time.monotonic() + seconds
    cases = (
        ("memcheck", "kernels", ("--only", "kernels.statistics", "--only", "kernels.ternarize", "--only", "kernels.apply", "--only", "kernels.add_scaled", "--only", "kernels.average", "--only", "kernels.digest")),
        ("racecheck", "kernels", ("--only", "kernels.statistics_of_many", "--only", "kernels.ternarize", "--only", "kernels.digest")),
        ("memcheck", "contract", ("--only", "contract.sink.mixed",)),
        ("memcheck", "networks", ("--only", "networks.small.concat", "--only", "networks.small.normalization", "--only", "networks.small.dropout", "--only", "networks.small.batch_normalization_relu")),
        ("initcheck", "kernels", ("--only", "kernels.digest", "--only", "kernels.ternarize")),
    )  # fmt: skip
    known = subprocess.run([tool, "--help"], capture_output=True, text=True).stdout
    by_name = "--kernel-name" if "--kernel-name" in known else "--kernel-regex"  # older tools' name for it
    right, wrong, missing = [], [], []
    for number, (check, part, only) in enumerate(cases):
        left = end - time.monotonic()
        name = f"{check} of {part}"
        if left < 3:
            missing.append(f"{name}: no time was left")
            continue
        text = []
        # A library may ask for what a driver has not, and go on: memcheck is to judge memory alone.
        # The libraries' own kernels are not ours to judge by the other two: they look at kernels of this project's namespace.
        options = ("--report-api-errors", "no") if check == "memcheck" else (by_name, "kns=N2tg")
        command = [tool, "--tool", check, *options, "--error-exitcode", "9", *bench.check(part, "--small", *only)]
        status = followed(command, bench.environment, min(left, left / (len(cases) - number) * 1.5), log, text.append)
        summary = next((each.strip("= ") for each in reversed(text) if "SUMMARY" in each), f"no summary: {text[-1] if text else ''}")
        refused = next((each.strip("= ") for each in text if "not supported" in each and each.startswith("=")), None)
        print(f"  {name}: {summary} ({status})", flush=True)
        those = right if status == 0 else missing if status is None or refused else wrong
        those.append(f"{name}: {'not in time' if status is None else refused or summary}")
    return Outcome("sanitizer", not wrong if right or wrong else None, f"{len(right)} of {len(cases)} clean", wrong, [f"- {each}" for each in right], missing)


PARTS = {each.__name__: each for each in (kernels, bandwidth, contract, networks, mesh, rates, sanitizer, cifarnet)}

# Fault of the stand-in, the check that has to find it, and its arithmetic.
FAULTS = (
    ("copy", "kernels.copies"), ("statistics", "kernels.statistics"), ("ternarize", "kernels.ternarize"), ("apply", "kernels.apply_adam"),
    ("add-scaled", "kernels.add_scaled"), ("average", "kernels.average"), ("digest", "kernels.digest"), ("loss", "networks.small.dense"),
    ("gradient", "networks.small.residual"), ("gradient", "networks.small.residual.reference"), ("doubled", "networks.lenet_8_of_28.slope"),
    ("padding", "networks.small.convolution"), ("batch-statistics", "networks.small.batch_normalization"),
    ("evaluation", "networks.small.concat_of_branches.evaluation"), ("rounding", "networks.small.convolution"),
    ("rounding", "networks.small.convolution", "tf32"), ("rounding", "networks.small.convolution", "bf16"),
    ("doubled", "networks.lenet_8_of_28", "bf16"), ("dropout", "contract.dropout"), ("repeat", "contract.repeats.mixed"),
    ("early", "contract.sink.mixed"), ("order", "contract.sink.mixed"), ("gate", "contract.gate.mixed"), ("limit", "contract.limits"),
    ("factor", "contract.factor.mixed"), ("thread", "contract.threads.mixed"),
)  # fmt: skip
IN_FEWER_BITS = ("--only", "networks.small.convolution", "--only", "networks.small.dense", "--only", "networks.lenet")


def stand_in():
    """The checks on the host, small: they pass, and each fault is found by the check that is there for it. The other programs and
    scripts of a run are tried too, as far as they go without a device."""
    builds = [build for build in (ROOT / bundle.CARRIED, ROOT / "build/release", ROOT / "build/cuda") if (build / CHECK).exists()]
    program = os.environ.get("TGD_GPU_CHECK") or (str(builds[0] / CHECK) if builds else None)
    if program is None:
        print("there is no tgd_gpu_check: ninja -C build/release tgd_gpu_check, or TGD_GPU_CHECK names it", file=sys.stderr)
        return 2
    carried = ROOT / bundle.CARRIED / "lib"
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"} | ({"LD_LIBRARY_PATH": str(carried)} if carried.is_dir() else {})
    wrong = []

    def ask(part, *more):
        done = subprocess.run([program, part, "--stand-in", "--small", *more], capture_output=True, text=True, env=environment, timeout=240)
        return done.returncode, done.stdout + done.stderr

    for part, *more in (("kernels",), ("contract",), ("networks",), *(("networks", "--math", math, *IN_FEWER_BITS) for math in ("tf32", "bf16"))):
        status, text = ask(part, *more)
        failed = re.findall(r"^(?:FAIL|none) .*", text, re.M)
        print(f"{' '.join([part, *more[1:2]])}: {len(re.findall('^ok ', text, re.M))} checks passed, {len(failed)} failed", flush=True)
        if status != 0:
            wrong += failed or [f"{part} ended with {status}: {text[-500:]}"]
    for fault, check, *math in FAULTS:
        status, text = ask(check.partition(".")[0], "--fault", fault, "--only", check, *(("--math", *math) if math else ()))
        found = re.search(rf"^FAIL {re.escape(check)}: (.*)", text, re.M)
        print(f"fault {fault}{f' in {math[0]}' if math else ''}: {found[0][:160] if found else 'NOT FOUND'}", flush=True)
        if status != 1 or not found:
            wrong.append(f"fault {fault} was not found by {check} ({status}): {text[-300:]}")
    for name, attempt in (("unjudged", try_unjudged), ("lost", try_lost), ("choices", try_choices), ("silent", try_silent), ("sanitizer", try_sanitizer), ("rates", try_rates), ("peer", try_peer), ("bundle", try_bundle)):
        try:
            print(f"{name}: {attempt(program, environment, builds)}", flush=True)
        except Exception as reason:
            traceback.print_exc()
            wrong.append(f"{name}: {reason}")
    print("\n".join(wrong) if wrong else f"passed; {len(FAULTS)} of {len(FAULTS)} faults found")
    return 1 if wrong else 0


def try_unjudged(program, environment, _):
    """A list that has no time left has neither passed nor failed."""
    done = subprocess.run([program, "kernels", "--stand-in", "--small", "--seconds", "-1", "--only", "kernels.digest"], capture_output=True, text=True, env=environment, timeout=60)
    if done.returncode != 3 or not done.stdout.startswith("begin kernels.digest\nnone kernels.digest: not run"):
        raise AssertionError(f"{done.returncode}: {done.stdout}")
    words = [Outcome("p", right, "", wrong, missing=missing).word() for right, wrong, missing in ((True, "", ""), (True, "w", "m"), (None, "", ""), (None, "", "m"), (True, "", "m"))]
    if words != ["pass", "FAIL", "not run", "not judged", "in part"]:
        raise AssertionError(words)
    return "not run is no pass"


def checks_of(command, environment, seconds=60):
    """A list of checks by another command: given the words of tgd_gpu_check, it returns what to run."""
    return Checks(types.SimpleNamespace(environment=environment, check=lambda *words: command([str(word) for word in words])), open(os.devnull, "w"), seconds)


def try_lost(program, environment, _):
    """A device that is lost to the process condemns the check that lost it alone: the next one has a process of its own."""
    runs = []

    def command(words):
        runs.append(words)
        fault = ["--fault", "lost"] if len(runs) == 1 else []
        return [program, *words, "--stand-in", "--small", *fault, "--only", "networks.small.dense", "--only", "networks.small.residual"]

    checks = checks_of(command, environment)
    checks.run("networks")
    if len(runs) != 2 or [name for name, _ in checks.wrong] != [checks.done[0]] or len(checks.right) < 5 or checks.missing:
        raise AssertionError(f"{len(runs)} processes, wrong {checks.wrong}, {len(checks.right)} right, {checks.missing}")
    return f"{len(checks.right)} checks passed behind it"


def try_choices(program, environment, _):
    """A check that fails names the algorithms, and they are the first engine's."""
    only = [word for name in ("networks.small.residual", "networks.small.residual.reference") for word in ("--only", name)]
    done = subprocess.run([program, "networks", "--stand-in", "--small", "--fault", "gradient", *only], capture_output=True, text=True, env=environment, timeout=60)
    chosen = re.findall(r"^FAIL (\S+): .*\n  choices: (.*)$", done.stdout, re.M)
    if len(chosen) < 2 or len({choices for name, choices in chosen if "projection" not in name}) != 1:
        raise AssertionError(done.stdout)
    return f"{len(chosen)} checks that fail name one choice"


def try_silent(_, environment, __):
    """A check that hangs is not run, and the list goes on behind it while there is time."""
    runs = []

    def command(words):
        runs.append(words)
        return ["sh", "-c", "echo begin a; sleep 60" if len(runs) == 1 else "echo begin b; echo ok b: right"]

    checks = checks_of(command, environment, LEAST + 8)
    checks.run("kernels", silence=1)
    if [name for name, _ in checks.missing] != ["a"] or [name for name, _ in checks.right] != ["b"] or checks.wrong or runs[1][-2:] != ["--skip", "a"]:
        raise AssertionError(f"{checks.right} {checks.wrong} {checks.missing} {runs}")
    return checks.missing[0][1]


def try_sanitizer(_, environment, __):
    """A stand-in for the tool shows how it is called: racecheck and initcheck look at this project's kernels alone."""
    for option in ("--kernel-name", "--kernel-regex"):
        with tempfile.TemporaryDirectory() as folder:
            tool = pathlib.Path(folder) / "compute-sanitizer"
            tool.write_text(f'#!/bin/sh\n[ "$1" = --help ] && echo "{option} arg" || echo "===== ERROR SUMMARY: 0 errors: $*"\n')
            tool.chmod(0o755)
            path, os.environ["PATH"] = os.environ["PATH"], f"{folder}:{os.environ['PATH']}"
            try:
                with open(os.devnull, "w") as log:
                    outcome = sanitizer(types.SimpleNamespace(environment=environment, check=lambda *words: words), log, 60)
            finally:
                os.environ["PATH"] = path
        named = [line.split()[1] for line in outcome.table if f"{option} kns=N2tg" in line]
        if named != ["racecheck", "initcheck"] or len(outcome.table) != 5:
            raise AssertionError(outcome.table)
    return "racecheck and initcheck of our kernels"


def try_rates(program, environment, _):
    command = [program, "rates", "--stand-in", "--model", "lenet", "--batch", "4", "--seconds", "0.1", "--math", "fp32", "--math", "bf16"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode != 0 or [row["math"] for row in rows] != ["fp32", "bf16"]:
        raise AssertionError(f"{done.returncode}: {done.stdout + done.stderr}")
    import rates as module

    table = module.Table()
    theirs = [{"math": "fp32", "how": "captured contiguous", "rate": 1.0}, {"math": "bf16", "how": "captured contiguous", "rate": 1e9}]
    for row in rows:
        table.add(module.CASES[0], row["math"], row, theirs)
    table.add(module.CASES[0], "tf32", {"refused": "math = tf32: it has none"}, [])
    table.add(module.CASES[0], "fp32", {"refused": "no driver"}, [])
    late = types.SimpleNamespace(environment=environment, check=lambda *_: ["sleep", "60"])
    with open(os.devnull, "w") as log:
        table.add(module.CASES[0], "bf16", module.ours(late, log, "lenet", 4, 1)["bf16"], [])
    if (len(table.right), len(table.wrong), len(table.missing)) != (1, 2, 2):
        raise AssertionError(table.text(""))
    parts = ", ".join(f"{key} {rows[0][key + '_ms']:.2f}" for key in ("compute", "update", "statistics", "codes", "apply", "step"))
    return f"LeNet, batch 4, ms: {parts}"


def try_peer(*_):
    """PyTorch on the processor, where this Python has one: asked, killed, asked again."""
    import rates as module

    peer = module.Peer([dict(os.environ)], None, ["--cpu"])
    try:
        if not peer.start(60):
            return f"not run: {peer.about}"
        first = peer.ask("lenet", 4, 1)
        peer.process.kill()
        broken = peer.ask("lenet", 4, 1)
        again = peer.ask("lenet", 8, 1)
        if not first[0]["rate"] > 0 or [row["rate"] for row in broken] != [0] or not again[0]["rate"] > 0:
            raise AssertionError(f"{first}, {broken}, {again}")
        return f"PyTorch {peer.about}: {first[0]['rate']:.0f} img/s"
    finally:
        peer.close()


def try_bundle(program, _, builds):
    """The folder for another machine, with the tree's programs, unpacked and started with nothing of this environment."""
    if (ROOT / bundle.CARRIED).exists():
        return "this is one"
    build = pathlib.Path(program).parents[2]
    if any(not (build / name).exists() for name in bundle.PROGRAMS[:3]):
        return f"not run: {build} has not all programs"
    with tempfile.TemporaryDirectory() as folder:
        if bundle.pack(pathlib.Path(folder) / "gpu", build, preset=0) != 0:
            raise AssertionError("it was not packed")
        bare = {"PATH": os.environ["PATH"], "TMPDIR": folder, "PYTHON": sys.executable, "PYTHONDONTWRITEBYTECODE": "1"}
        start = [f"{folder}/gpu/run", "--only", "kernels", "--minutes", "0.5", "--out", f"{folder}/out"]
        done = subprocess.run(start, capture_output=True, text=True, env=bare, cwd="/", timeout=120)
        unpacked = next(pathlib.Path(folder).glob("tgd-gpu-*"))
        libraries = subprocess.run(["ldd", unpacked / bundle.CARRIED / "daemon/tgd"], capture_output=True, text=True, env={"LD_LIBRARY_PATH": str(unpacked / bundle.CARRIED / "lib")}).stdout
        others = [line for line in libraries.splitlines() if "=> /" in line and str(unpacked) not in line and not bundle.LEFT.match(line.strip())]
        page = (pathlib.Path(folder) / "out/RESULTS.md").read_text()
        if done.returncode not in (0, 1) or "| kernels |" not in page or others or re.search("^- build: unknown", page, re.M):
            raise AssertionError(f"{done.returncode}: {others} {page} {done.stdout[-1000:]} {done.stderr[-1000:]}")
        return f"starts by itself; {re.search('^- module: (.*)', page, re.M)[1][:100]}"
