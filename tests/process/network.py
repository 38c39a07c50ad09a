"""Network namespaces on a bridge, one per node: what a switch sees, and links that can be cut in one direction.

Needs root, iproute2 and, to cut, iptables; NetworkUnavailable says what is missing. All names begin with a prefix that
holds the process id, and everything is removed at the end.
"""

import os
import re
import shutil
import subprocess


class NetworkUnavailable(Exception):
    pass


def _do(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise NetworkUnavailable(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


class Network:
    """`count` namespaces with one interface each, all on one bridge without a way out."""

    INTERFACE = "eth0"

    def __init__(self, count, cut=False, addresses=None):
        if os.geteuid() != 0:
            raise NetworkUnavailable("network namespaces need root")
        for tool in ("ip", "iptables") if cut else ("ip",):
            if shutil.which(tool) is None:
                raise NetworkUnavailable(f"{tool} is not installed")
        self._id = f"tg{os.getpid()}"  # an interface's name has at most 15 bytes
        self.spaces = [f"{self._id}n{i}" for i in range(count)]
        self.addresses = addresses or [f"10.213.{os.getpid() % 250}.{i + 1}" for i in range(count)]
        self.prefixes = [("ip", "netns", "exec", space) for space in self.spaces]

    def __enter__(self):
        try:
            self._build()
        except NetworkUnavailable:
            self.__exit__()
            raise
        return self

    def _build(self):
        self._remove_orphans()
        # The bridge has a namespace of its own: nothing of the machine's is touched.
        switch = f"{self._id}sw"
        _do("ip", "netns", "add", switch)
        _do("ip", "-n", switch, "link", "add", "br0", "type", "bridge")
        _do("ip", "-n", switch, "link", "set", "br0", "up")
        for i, (space, address) in enumerate(zip(self.spaces, self.addresses)):
            port = f"{self._id}p{i}"
            self._add(i, space)
            _do("ip", "-n", switch, "link", "add", port, "type", "veth", "peer", "name", self.INTERFACE, "netns", space)
            _do("ip", "-n", switch, "link", "set", port, "master", "br0", "up")
            _do("ip", "-n", space, "address", "add", f"{address}/24", "dev", self.INTERFACE)
            _do("ip", "-n", space, "link", "set", self.INTERFACE, "up")
            _do("ip", "-n", space, "link", "set", "lo", "up")

    def _add(self, index, space):
        _do("ip", "netns", "add", space)

    def __exit__(self, *_):
        for space in [*self.spaces, f"{self._id}sw"]:
            self._remove(space)
        return False

    @staticmethod
    def _remove(space):
        # Its interfaces go with it.
        shutil.rmtree(f"/etc/netns/{space}", ignore_errors=True)
        subprocess.run(["ip", "netns", "delete", space], stdin=subprocess.DEVNULL, capture_output=True)

    def _remove_orphans(self):
        """What a test that was killed has left behind."""
        for line in _do("ip", "netns", "list").splitlines():
            name = line.split()[0] if line.split() else ""
            owner = re.fullmatch(r"tg(\d+)(n\d+|sw)", name)
            if owner and not os.path.exists(f"/proc/{owner[1]}"):
                self._remove(name)

    def cut(self, index):
        """Drops whatever this node sends; what is sent to it still arrives."""
        self._refuse(index, "OUTPUT", "-o", self.INTERFACE)

    def isolate(self, index):
        """Nothing leaves this node, nothing arrives."""
        self.cut(index)
        self._refuse(index, "INPUT", "-i", self.INTERFACE)

    def part(self, one, other):
        """These two do not hear each other; all others hear both."""
        self._refuse(one, "OUTPUT", "-d", self.addresses[other])
        self._refuse(one, "INPUT", "-s", self.addresses[other])

    def close_port(self, one, other, port, reset=False):
        """What this node sends to that port of the other one is dropped, or its connections are reset."""
        target = ("REJECT", "--reject-with", "tcp-reset") if reset else ("DROP",)
        self._refuse(one, "OUTPUT", "-d", self.addresses[other], "-p", "tcp", "--dport", str(port), target=target)

    def lose(self, index):
        """A tenth of what this node sends is lost."""
        self._refuse(index, "OUTPUT", "-o", self.INTERFACE, "-m", "statistic", "--mode", "random", "--probability", "0.1")

    def slow(self, index):
        """This node sends 2 Mbit/s."""
        _do("tc", "-n", self.spaces[index], "qdisc", "replace", "dev", self.INTERFACE, "root", "tbf", "rate", "2mbit", "burst", "16kb", "latency", "200ms")

    def _refuse(self, index, chain, *match, target=("DROP",)):
        _do(*self.prefixes[index], "iptables", "-A", chain, *match, "-j", *target)

    def heal(self, *indices):
        """Everything arrives again; or what these nodes cut off themselves."""
        for prefix in [self.prefixes[index] for index in indices] or self.prefixes:
            _do(*prefix, "iptables", "-F")
        for space in self.spaces:
            subprocess.run(["tc", "-n", space, "qdisc", "del", "dev", self.INTERFACE, "root"], capture_output=True)  # refused where none is slow

    def write_hosts(self, *lines):
        """The names that every node knows: its own /etc/hosts, by `ip netns exec`."""
        for space in self.spaces:
            os.makedirs(f"/etc/netns/{space}", exist_ok=True)
            with open(f"/etc/netns/{space}/hosts", "w") as file:
                file.writelines(f"{line}\n" for line in lines)

    def sent_bytes(self, index):
        """The bytes that the interface counts as sent, headers included."""
        return int(_do(*self.prefixes[index], "cat", f"/sys/class/net/{self.INTERFACE}/statistics/tx_bytes"))
