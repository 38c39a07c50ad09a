"""Hosts on one switch, as network namespaces on a bridge, with links shaped to what a real Ethernet carries.

    with Shaped(4, rate="1gbit", grain=grain_for(30e6, "1gbit")) as lab:
        lab.prefixes[0]     # the command that runs another one on host 0, at lab.addresses[0]

Shaping. A host's own side shapes what it sends, the switch's side what it is sent, as a switch port does. A 1 Gbit/s
Ethernet carries frames of 1514 bytes (what the kernel counts) in the time of 1538 (checksum 4, preamble 8, gap 12), so
the shapers run at rate * 1514/1538 and TCP gets the 941 Mbit/s of a real link.

Grain. A shaper's bucket has to hold one whole super-packet (GSO), or the kernel cuts it into frames in software, which
costs more CPU than a small machine has. The bucket is also what passes unshaped after a pause: `coarse` (64 KiB packets,
80 kB) is for steps of COARSE_BYTES or more, where it is at most 2 % too kind; `fine` (16 KiB, 20 kB) for smaller ones,
up to 0.16 ms too kind at 1 Gbit/s; `finest` (4 KiB, 6 kB) for links of some 100 Mbit/s and less, where the CPU can afford
it. `auto` is what grain_for takes of the first two.

Needs root, or a user that may make user namespaces (become_root); NetworkUnavailable says what is missing. Everything is
removed at the end, and what a killed lab left behind by the next one.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "process"))
from network import Network, NetworkUnavailable, _do  # noqa: E402

GRAINS = {"coarse": (65536, 80 * 1024), "fine": (16384, 20 * 1024), "finest": (4096, 6 * 1024)}  # GSO and bucket, bytes
COARSE_BYTES = 4e6
PAYLOAD_SHARE = 1448 / 1538  # times the line rate: what TCP with timestamps gets out of frames of 1500 bytes
FRAME_SHARE = 1514 / 1538  # what the kernel counts of a frame
HOST_QUEUE_BYTES = 1000 * 1514
PORT_QUEUE_BYTES = 512 * 1024
_UNITS = {"gbit": 1e9, "mbit": 1e6, "kbit": 1e3}


def bits_per_second(rate):
    """The bits per second of "1gbit" or "250mbit"; None for "none"."""
    if rate == "none":
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(gbit|mbit|kbit)", rate)
    if not match or float(match[1]) <= 0:
        raise ValueError(f'"{rate}" is no rate: 1gbit, 250mbit, ... or none')
    return float(match[1]) * _UNITS[match[2]]


def payload_bits_per_second(rate):
    """What TCP carries at this rate: 941 Mbit/s at 1gbit; None without shaping."""
    line = bits_per_second(rate)
    return None if line is None else line * PAYLOAD_SHARE


def grain_for(bytes_per_step, rate):
    """By what a node sends in a step. Without shaping nothing passes too early, and packets are as large as they get."""
    return "fine" if rate != "none" and bytes_per_step < COARSE_BYTES else "coarse"


def become_root():
    """Runs this program again as root of a user namespace, if this user is not root but may make one."""
    if os.geteuid() == 0 or os.environ.get("TGD_LAB_UNSHARED"):
        return
    unshare = ["unshare", "--user", "--map-root-user", "--net", "--mount"]
    if shutil.which("unshare") is None or subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
        return  # Network says then what is missing
    # ip keeps the names of its namespaces below /run.
    script = 'mount -t tmpfs none /run && ip link set lo up && exec "$@"'
    os.environ["TGD_LAB_UNSHARED"] = "1"
    os.execvp("unshare", [*unshare, "sh", "-c", script, "sh", sys.executable, *sys.argv])


class Shaped(Network):
    def __init__(self, count, rate, grain):
        super().__init__(count)
        self.rate, self.grain, self.line = rate, grain, bits_per_second(rate)
        if shutil.which("tc") is None:
            raise NetworkUnavailable("tc is not installed (package iproute2)")

    def _build(self):
        super()._build()
        packet, _ = GRAINS[self.grain]
        switch = f"{self._id}sw"
        # A switch does not ask a firewall about every frame.
        _do("ip", "netns", "exec", switch, "sh", "-c", "for f in /proc/sys/net/bridge/bridge-nf-call-*; do echo 0 >$f; done 2>&-; :")
        for i, (space, prefix) in enumerate(zip(self.spaces, self.prefixes)):
            # Nothing but the test talks on these links, and each talks as Linux does by default.
            _do(*prefix, "sh", "-c", "cd /proc/sys/net; for f in ipv6/conf/*/disable_ipv6; do echo 1 >$f; done 2>&-; echo cubic >ipv4/tcp_congestion_control 2>&-; :")  # fmt: skip
            port = f"{self._id}p{i}"
            for where, device, queue in ((space, self.INTERFACE, HOST_QUEUE_BYTES), (switch, port, PORT_QUEUE_BYTES)):
                _do("ip", "-n", where, "link", "set", device, "gso_max_size", str(packet), "txqueuelen", "1000")
                if self.line is not None:
                    self._shape(where, device, queue)

    def _shape(self, space, device, queue_bytes):
        _, bucket = GRAINS[self.grain]
        _do("tc", "-n", space, "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{self.line * FRAME_SHARE:.0f}bit",
            "burst", str(bucket), "limit", str(queue_bytes))  # fmt: skip

    def drops(self):
        """Packets that hosts and switch ports have thrown away because a queue was full; TCP sends them again."""
        total = 0
        for i, space in enumerate(self.spaces):
            for where, device in ((space, self.INTERFACE), (f"{self._id}sw", f"{self._id}p{i}")):
                shown = json.loads(_do("tc", "-n", where, "-s", "-j", "qdisc", "show", "dev", device) or "[]")
                total += sum(one.get("drops", 0) for one in shown)
        return total

    def remove_all(self):
        """What labs that were killed have left behind."""
        self._remove_orphans()
