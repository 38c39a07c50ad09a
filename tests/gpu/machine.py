"""What machine it was, and the page that is kept."""

import datetime
import platform
import re
import shutil
import subprocess


def said(*command, environment=None):
    """What a program prints, or nothing where it cannot be run."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=45, env=environment).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def processor():
    with open("/proc/cpuinfo") as file:
        names = re.findall(r"model name\s*: (.*)", file.read())
    return f"{names[0] if names else platform.machine()}, {len(names)} processors"


def facts(bench):
    gpu = said("nvidia-smi", "-i", str(bench.options.device), "--query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.memory", "--format=csv,noheader")
    compiler = re.search(r"release [\d.]+, V[\d.]+", said(shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc", "--version"))
    return [
        f"date: {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        f"device: {gpu or 'nvidia-smi says nothing'} (name, driver, memory, highest clocks)",
        f"module: {bench.about}",
        f"build: {(said(bench.program('daemon/tgd'), '--version', environment=bench.environment).splitlines() or ['unknown'])[0]}",
        f"host: {processor()}; {platform.system()} {platform.release()}; glibc {platform.libc_ver()[1]}",
        f"CUDA's libraries: {', '.join(f'{name} {path}' for name, path in bench.found.items()) or 'the module is not there'}",
        f"beside: nvcc {compiler[0] if compiler else 'none'}; {bench.torch_versions or 'no PyTorch'}; Python {platform.python_version()}",
    ]


class Page:
    def __init__(self, bench):
        self.facts = facts(bench)

    def text(self, outcomes):
        lines = ["# Results of tests/gpu/run", "", *(f"- {fact}" for fact in self.facts), "", "| part | | | s |", "|---|---|---|---:|"]
        lines += [f"| {one.name} | {one.word()} | {one.text.replace('|', '/')} | {one.seconds:.0f} |" for one in outcomes]
        for one in outcomes:
            if one.table:
                lines += ["", f"## {one.name}", "", *one.table]
            if one.wrong:
                lines += ["", f"## {one.name}: what was wrong", "", *(f"- {each}" for each in one.wrong)]
            if one.missing:
                lines += ["", f"## {one.name}: what was not run or not judged", "", *(f"- {each}" for each in one.missing)]
        return "\n".join(lines) + "\n"
