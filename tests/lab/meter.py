"""What the nodes of a lab use while a run goes on: CPU time and bytes on the wire, sampled from /proc.

Everything a sample needs is one read of a small file per node, so that metering takes no share of what it measures.
"""

import bisect
import os
import threading
import time

TICK = os.sysconf("SC_CLK_TCK")
SAMPLE_SECONDS = 0.02


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK  # utime, stime


def machine_seconds():
    """CPU time that all processes of this machine have used."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq = map(int, file.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / TICK


def sent_bytes(pid, interface):
    """Bytes that the interface in this process's network namespace has sent, headers included."""
    with open(f"/proc/{pid}/net/dev") as file:
        for line in file:
            name, _, counters = line.partition(":")
            if name.strip() == interface:
                return int(counters.split()[8])
    raise RuntimeError(f"process {pid} sees no interface {interface}")


def peak_bytes(pid):
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def wait_idle(seconds, most_busy=0.1):
    """Waits up to so long until others leave this machine alone for two seconds; whether they did."""
    deadline = time.monotonic() + seconds
    quiet = 0
    while quiet < 4 and time.monotonic() < deadline:
        before = machine_seconds()
        time.sleep(0.5)
        quiet = quiet + 1 if machine_seconds() - before < most_busy * 0.5 * os.cpu_count() else 0
    return quiet >= 4


class Meter:
    """Samples the processes from entering to leaving the block; between() says what they used in a span of time."""

    def __init__(self, pids, interface):
        self.pids, self.interface = pids, interface
        self._times, self._rows = [], []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._sample()
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        return False

    def _run(self):
        try:
            while not self._stop.wait(SAMPLE_SECONDS):
                self._sample()
        except (OSError, RuntimeError):
            pass  # a node has died: the caller that runs the job reports it

    def _sample(self):
        row = [cpu_seconds(pid) for pid in self.pids] + [sent_bytes(pid, self.interface) for pid in self.pids]
        self._times.append(time.time())
        self._rows.append([*row, machine_seconds()])

    def _at(self, moment):
        right = min(max(bisect.bisect_left(self._times, moment), 1), len(self._times) - 1)
        before, after = self._times[right - 1], self._times[right]
        share = min(max((moment - before) / (after - before), 0), 1)
        return [a + share * (b - a) for a, b in zip(self._rows[right - 1], self._rows[right])]

    def between(self, begin, end):
        """(CPU seconds by process, sent bytes by process, CPU seconds of the machine)."""
        used = [b - a for a, b in zip(self._at(begin), self._at(end))]
        count = len(self.pids)
        return used[:count], used[count : 2 * count], used[2 * count]
