"""The parts of tests/gpu/run. Each ends within its time and gives an Outcome; one that fails stops no other."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time
import traceback

import bundle

ROOT = bundle.ROOT
HERE = pathlib.Path(__file__).resolve().parent
CHECK = "tests/gpu/tgd_gpu_check"
CRASHES = 8  # that a list of checks is taken up again after
# Where CUDA's libraries lie if the loader does not know them: the toolkit's, or those that came with PyTorch.
TOOLKIT = ("/usr/local/cuda/lib64", "/usr/local/cuda/extras/CUPTI/lib64")


class Outcome:
    def __init__(self, name, passed, text, wrong=(), table=()):
        self.name, self.passed, self.text, self.wrong, self.table = name, passed, text, list(wrong), list(table)
        self.seconds = 0.0

    def word(self):
        return {True: "pass", False: "FAIL", None: "not run"}[self.passed]

    def line(self):
        first = f"; {self.wrong[0]}" if self.wrong else ""
        return f"{self.name:<10} {self.word():<7} {self.text}{first[:200]} ({self.seconds:.0f} s)"


class Bench:
    """The programs, and the environment that they run in."""

    def __init__(self, options):
        self.options = options
        self.build = self.find_build(options.build)
        self.module = self.build / "engine/tgd-cuda.so"
        self.torch_version, torch_folders = self.ask_torch()
        folders = [options.libraries, str(self.build / "lib") if (self.build / "lib").is_dir() else "", *TOOLKIT]
        if not self.loader_knows("libcudnn.so.9"):
            folders += torch_folders
        self.libraries = ":".join(folder for folder in folders if folder)
        self.environment = {**os.environ, "LD_LIBRARY_PATH": self.libraries, "OMP_WAIT_POLICY": "passive"}
        self.cupti = next((str(path) for folder in [*TOOLKIT, *torch_folders] for path in sorted(pathlib.Path(folder).glob("libcupti.so*"))), "")
        self.about = self.ask_module()

    @staticmethod
    def find_build(given):
        for build in (given, ROOT / bundle.CARRIED, ROOT / "build/cuda"):
            if build is not None and (build / CHECK).exists():
                return build
        sys.exit("there is no tgd_gpu_check in build/cuda: cmake --preset cuda && ninja -C build/cuda tgd tgctl tgd_gpu_check tgd_cuda")

    def program(self, name):
        return str(self.build / name)

    @staticmethod
    def loader_knows(library):
        tool = shutil.which("ldconfig") or "/sbin/ldconfig"
        return library in subprocess.run([tool, "-p"], capture_output=True, text=True).stdout

    @staticmethod
    def ask_torch():
        """PyTorch's version, and the folders of the libraries that came with it."""
        asked = (
            "import pathlib, sys, torch, torchvision; print(f'PyTorch {torch.__version__}, torchvision {torchvision.__version__}, CUDA {torch.version.cuda}, '"
            "f'cuDNN {torch.backends.cudnn.version()}, Python {sys.version.split()[0]}');"
            "print(':'.join(str(p) for p in sorted((pathlib.Path(torch.__file__).parents[1] / 'nvidia').glob('*/lib'))))"
        )
        try:
            done = subprocess.run(["python3", "-c", asked], capture_output=True, text=True, timeout=120)
        except (OSError, subprocess.TimeoutExpired):
            return "", []
        lines = done.stdout.splitlines()
        return (lines[0], [folder for folder in lines[1].split(":") if folder]) if done.returncode == 0 and len(lines) == 2 else ("", [])

    def ask_module(self):
        try:
            done = subprocess.run(self.check("about"), capture_output=True, text=True, timeout=120, env=self.environment)
        except subprocess.TimeoutExpired:
            return "does not answer"
        return (done.stdout or done.stderr or f"ended with {done.returncode}").strip()

    def check(self, part, *more):
        return [self.program(CHECK), part, "--module", str(self.module), "--device", str(self.options.device), *map(str, more)]


def followed(command, environment, seconds, log, line):
    """Runs a program, gives line() each of its lines; its exit status, or None where it had to be killed."""
    process = subprocess.Popen(
        [str(word) for word in command], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", start_new_session=True,
    )  # fmt: skip
    late = threading.Event()

    def end():
        late.set()
        os.killpg(process.pid, 9)

    clock = threading.Timer(max(seconds, 1), end)
    clock.start()
    try:
        for text in process.stdout:
            log.write(text)
            line(text.rstrip("\n"))
        status = process.wait()
    finally:
        clock.cancel()
        log.flush()
    return None if late.is_set() else status


class Checks:
    """A list of checks of tgd_gpu_check, taken up again behind one that ends the process."""

    def __init__(self, bench, log, seconds):
        self.bench, self.log, self.end = bench, log, time.monotonic() + seconds
        self.right, self.wrong, self.begun, self.last = [], [], None, ""

    def line(self, text):
        begin = re.match(r"begin (\S+)$", text)
        found = re.match(r"(ok|FAIL) (\S+): (.*)$", text)
        if begin:
            self.begun = begin[1]
        elif found:
            self.begun = None
            (self.right if found[1] == "ok" else self.wrong).append((found[2], found[3]))
            print(f"  {text[:230]}", flush=True)
        elif text:
            self.last = text

    def run(self, part, *more):
        done = []
        for _ in range(CRASHES):
            left = self.end - time.monotonic()
            # The program leaves out what it has no time for; who does not come back is ended.
            command = self.bench.check(part, "--seconds", f"{max(left - 10, 1):.0f}", *more, *(word for name in done for word in ("--skip", name)))
            self.begun = None
            status = followed(command, self.bench.environment, left, self.log, self.line)
            if status in (0, 1):
                return
            if self.begun is None:
                self.wrong.append((part, f"ended with {status}: {self.last}"))
                return
            why = "did not end in time" if status is None else f"ended the process ({status}): {self.last}"
            self.wrong.append((self.begun, why))
            print(f"  FAIL {self.begun}: {why[:200]}", flush=True)
            if status is None:
                return
            done = [name for name, _ in self.right + self.wrong]

    def outcome(self, name):
        count = len(self.right) + len(self.wrong)
        return Outcome(name, count > 0 and not self.wrong, f"{len(self.right)} of {count} checks", [f"{one}: {why}" for one, why in self.wrong])


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
    checks.run("bandwidth", *(("--cupti", bench.cupti) if bench.cupti else ()))
    outcome = checks.outcome("bandwidth")
    outcome.table = ["| kernel | |", "|---|---|"] + [f"| {name.removeprefix('bandwidth.')} | {text} |" for name, text in checks.right + checks.wrong]
    ratios = [f"{name.removeprefix('bandwidth.')} {found[1]}" for name, text in checks.right + checks.wrong if (found := re.search(r"([\d.]+) of the copy", text))]
    outcome.text += ": " + ", ".join(ratios)
    return outcome


def contract(bench, log, seconds):
    checks = Checks(bench, log, seconds)
    checks.run("contract")
    outcome = checks.outcome("contract")
    outcome.table = [f"- {name}: {text}" for name, text in checks.right if re.search("limits|out_of_memory", name)]
    return outcome


def networks(bench, log, seconds):
    """Strict float32; then the small ones, and one whole, in tf32."""
    checks = Checks(bench, log, seconds)
    checks.run("networks")
    strict = len(checks.right)
    checks.run("networks", "--math", "tf32", "--only", "networks.small.convolution", "--only", "networks.lenet")
    outcome = checks.outcome("networks")
    outcome.text += f", {strict} in float32 and {len(checks.right) - strict} in tf32"
    outcome.table = ["| network | |", "|---|---|"] + [f"| {name.removeprefix('networks.')} | {text} |" for name, text in checks.right if "small" not in name]
    return outcome


def mesh(bench, log, seconds):
    return whole_runs("mesh", bench, log, seconds)


def cifarnet(bench, log, seconds):
    return whole_runs("cifarnet", bench, log, seconds, *(("--data", bench.options.data.resolve()) if bench.options.data else ()))


def whole_runs(name, bench, log, seconds, *more):
    """Real nodes, in a process of its own (meshes.py): the last line that begins with its word is the summary."""
    found = {"ok": [], "FAIL": [], "table": []}

    def line(text):
        print(f"  {text[:230]}", flush=True)
        word, _, rest = text.partition(" ")
        if word in found:
            found[word].append(rest)

    environment = {
        **bench.environment, "TGD": bench.program("daemon/tgd"), "TGCTL": bench.program("ctl/tgctl"), "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    command = ["python3", HERE / "meshes.py", name, "--seconds", f"{seconds - 8:.0f}", "--device", bench.options.device, *more]
    status = followed(command, environment, seconds, log, line)
    if status is None:
        found["FAIL"].append("did not end in time")
    elif status != 0 and not found["FAIL"]:
        found["FAIL"].append(f"ended with {status}")
    return Outcome(name, status == 0 and bool(found["ok"]), "; ".join(found["ok"]), found["FAIL"], found["table"])


def rates(bench, log, seconds):
    import rates as module

    return module.measure(bench, log, seconds)


def sanitizer(bench, log, seconds):
    tool = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if tool is None:
        return Outcome("sanitizer", None, "no compute-sanitizer on this machine")
    end = time.monotonic() + seconds
    cases = (
        ("memcheck", "kernels", ("--only", "kernels.statistics", "--only", "kernels.ternarize", "--only", "kernels.apply", "--only", "kernels.add_scaled", "--only", "kernels.average", "--only", "kernels.digest")),
        ("racecheck", "kernels", ("--only", "kernels.statistics_of_many", "--only", "kernels.ternarize", "--only", "kernels.digest")),
        ("memcheck", "contract", ("--only", "contract.sink.mixed",)),
        ("memcheck", "networks", ("--only", "networks.small.concat", "--only", "networks.small.normalization", "--only", "networks.small.dropout", "--only", "networks.small.batch_normalization_relu")),
        ("initcheck", "kernels", ("--only", "kernels.digest", "--only", "kernels.ternarize")),
    )  # fmt: skip
    right, wrong = [], []
    for number, (check, part, only) in enumerate(cases):
        left = end - time.monotonic()
        name = f"{check} of {part}"
        if left < 3:
            wrong.append(f"{name}: no time was left")
            continue
        text = []
        command = [tool, "--tool", check, "--error-exitcode", "9", *bench.check(part, "--small", *only)]
        status = followed(command, bench.environment, left / (len(cases) - number) * 1.5, log, text.append)
        summary = next((each for each in reversed(text) if "SUMMARY" in each), "no summary")
        print(f"  {name}: {summary} ({status})", flush=True)
        (right if status == 0 else wrong).append(f"{name}: {'not in time' if status is None else summary.strip('= ')}")
    return Outcome("sanitizer", not wrong, f"{len(right)} of {len(cases)} clean", wrong, [f"- {each}" for each in right])


PARTS = {each.__name__: each for each in (kernels, bandwidth, contract, networks, mesh, rates, sanitizer, cifarnet)}

# Fault of the stand-in: part, and the check that has to find it.
FAULTS = {
    "copy": ("kernels", "kernels.copies"), "statistics": ("kernels", "kernels.statistics"), "ternarize": ("kernels", "kernels.ternarize"),
    "apply": ("kernels", "kernels.apply_adam"), "add-scaled": ("kernels", "kernels.add_scaled"), "average": ("kernels", "kernels.average"),
    "digest": ("kernels", "kernels.digest"), "loss": ("networks", "networks.small.dense"), "gradient": ("networks", "networks.small.residual"),
    "padding": ("networks", "networks.small.convolution"), "batch-statistics": ("networks", "networks.small.batch_normalization"),
    "evaluation": ("networks", "networks.small.concat_of_branches.evaluation"), "dropout": ("contract", "contract.dropout"),
    "repeat": ("contract", "contract.repeats.mixed"), "early": ("contract", "contract.sink.mixed"), "order": ("contract", "contract.sink.mixed"),
    "gate": ("contract", "contract.gate.mixed"), "limit": ("contract", "contract.limits"),
}  # fmt: skip


def stand_in():
    """The checks on the host, small: they pass, and each fault is found by the check that is there for it."""
    builds = [build for build in (ROOT / bundle.CARRIED, ROOT / "build/release", ROOT / "build/cuda") if (build / CHECK).exists()]
    program = os.environ.get("TGD_GPU_CHECK") or (str(builds[0] / CHECK) if builds else None)
    if program is None:
        sys.exit("there is no tgd_gpu_check: ninja -C build/release tgd_gpu_check, or TGD_GPU_CHECK names it")
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    if builds and (builds[0] / "lib").is_dir():
        environment["LD_LIBRARY_PATH"] = str(builds[0] / "lib")
    wrong = []

    def ask(part, *more):
        done = subprocess.run([program, part, "--stand-in", "--small", *more], capture_output=True, text=True, env=environment, timeout=240)
        return done.returncode, done.stdout + done.stderr

    for part in ("kernels", "contract", "networks"):
        status, text = ask(part)
        failed = re.findall(r"^FAIL .*", text, re.M)
        print(f"{part}: {len(re.findall('^ok ', text, re.M))} checks passed, {len(failed)} failed", flush=True)
        if status != 0:
            wrong += failed or [f"{part} ended with {status}: {text[-500:]}"]
    for fault, (part, check) in FAULTS.items():
        status, text = ask(part, "--fault", fault, "--only", check)
        found = re.search(rf"^FAIL {re.escape(check)}: (.*)", text, re.M)
        print(f"fault {fault}: {found[0][:160] if found else 'NOT FOUND'}", flush=True)
        if status != 1 or not found:
            wrong.append(f"fault {fault} was not found by {check} ({status}): {text[-300:]}")
    print("\n".join(wrong) if wrong else f"passed; {len(FAULTS)} of {len(FAULTS)} faults found")
    return 1 if wrong else 0
