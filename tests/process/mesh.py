"""A mesh of real tgd processes on loopback (or in network namespaces), for tests.

    with Mesh(4) as mesh:
        run = mesh.start({"steps": 10})       # tgctl start, followed to its end
        print(mesh.run(run)["digest"])        # tgctl status --json

Every wait polls what the programs themselves say, with a deadline; nothing sleeps and hopes. Leaving the block kills
every process; if it is left by a failure, the folder with configurations, logs and states is kept and the tails of
the logs are printed. The programs are named by the environment: TGD and TGCTL.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from addresses import free_port_pair, own_loopback_address, with_port
from asking import FINAL, TGCTL, Answer, Follower
from node import Node
from patience import PATIENCE, Elapsed, communicate, wait_until

# A small honest job: a step of it takes some milliseconds per node.
SMALL_JOB = {
    "auto-resume": "false",  # what was interrupted stays so, to be looked at
    "join-limit": "0s",  # the same
    "model": "lenet",
    "data": "synthetic",
    "data-train": 256,
    "data-test": 64,
    "steps": 10,
    "global-batch": 16,
    "learning-rate": 0.01,
    "digest-every": 5,
}
QUICK = {"model": "mlp", "hidden": 32, "steps": 3}  # a tenth of that: it shows that a mesh trains


class Mesh:
    """`count` nodes named node-a, node-b, ... Settings go to every configuration, those of `per_node` (by index) win.

    hosts and prefixes, one per node, put the nodes into namespaces; `absent` ones are configured but not started.
    keys: all have one cluster key file, and tgctl takes it too.
    """

    def __init__(self, count, settings=None, per_node=None, hosts=None, prefixes=None, absent=(), keys=False):
        self.folder = tempfile.mkdtemp(prefix="tgd-test-")
        self.key_file = os.path.join(self.folder, "cluster.key") if keys else None
        if keys:
            self.keygen(self.key_file)
            settings = {"key-file": self.key_file} | (settings or {})
        self.settings = {"threads": 1, "peer-timeout": "5s", "engine": "cpu"} | (settings or {})  # what is said must not depend on the machine's GPU
        self.per_node = {index: dict(keys) for index, keys in (per_node or {}).items()}
        self.absent = set(absent)
        hosts = hosts or [own_loopback_address()] * count
        prefixes = prefixes or [()] * count
        self.nodes = [
            Node(f"node-{chr(ord('a') + i)}", hosts[i], 7700 if prefixes[i] else free_port_pair(hosts[i]), self.folder, prefixes[i])
            for i in range(count)
        ]
        self.followers = []
        for i in range(count):
            self.configure(i)

    def __len__(self):
        return len(self.nodes)

    def __getitem__(self, index):
        return self.nodes[index]

    def configure(self, index, **changes):
        """Writes the node's file again; a setting of None goes away. Underscores stand for dashes."""
        own = self.per_node.setdefault(index, {})
        own |= {key.replace("_", "-"): value for key, value in changes.items()}
        node = self.nodes[index]
        lines = [f"node = {node.name}"]
        lines += [f"peer = {one.name}@{with_port(one.host, one.port)}" for one in self.nodes]
        keys = {"listen": node.host, "state-dir": node.state_dir} | self.settings | own
        lines += [f"{key} = {value}" for key, value in keys.items() if value is not None]
        with open(node.config, "w") as file:
            file.write("\n".join(lines) + "\n")

    # --- life ---

    def __enter__(self):
        try:
            self.start_nodes()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, error, trace):
        failed = kind is not None and not issubclass(kind, unittest.SkipTest)
        try:
            if not failed:
                self.end_nodes()
        except AssertionError:
            failed = True
            raise
        finally:
            report = self.report() if failed else ""
            for follower in self.followers:
                follower.kill()
            for node in self.nodes:
                node.kill()
            if failed:
                sys.stderr.write(report)
                sys.stderr.flush()
            else:
                shutil.rmtree(self.folder, ignore_errors=True)
        return False

    def end_nodes(self):
        """Every test ends as a user would end it, and each node that is left has to do so in good order."""
        left = [node for node in self.nodes if node.alive()]
        for node in left:
            node.signal(signal.SIGTERM)
        for node in left:
            status = node.wait()
            if status != 0:
                raise AssertionError(f"{node.name} ended with {status} (log {node.log}):\n{node.tail()}")

    def report(self):
        text = f"\n=== {self.folder} is kept: configurations, logs and states of the nodes\n"
        witness = next((node for node in self.nodes if node.alive()), None)
        if witness is not None:
            try:
                text += f"=== runs as {witness.name} sees them\n" + self.ctl("list", node=witness, patience=10).out
            except AssertionError as silence:
                text += f"=== {witness.name} does not say which runs there are: {silence}\n"
        return text + "".join(node.tail() for node in self.nodes)

    def start_nodes(self):
        present = [node for i, node in enumerate(self.nodes) if i not in self.absent]
        for node in present:
            node.start()
        self.wait_ready(present)

    def wait_ready(self, nodes=None):
        """Until each of the nodes sees all of them up."""
        nodes = self.nodes if nodes is None else nodes
        names = {node.name for node in nodes}
        for node in nodes:
            seen = {}

            def ready():
                if not node.alive():
                    raise AssertionError(f"{node.name} did not start (log {node.log}):\n{node.tail()}")
                answer = self.ctl("status", "--json", node=node)
                if answer.code != 0:
                    return False
                seen.update({row["name"]: row["state"] for row in json.loads(answer.out)["nodes"]})
                return all(seen.get(name) == "up" for name in names)

            wait_until(lambda: f"{node.name} (log {node.log}) sees {seen}", ready)

    def restart(self, indices=None):
        """Ends and starts the nodes again, all by default."""
        nodes = [self.nodes[i] for i in indices] if indices is not None else self.nodes
        for node in nodes:
            node.end()
        for node in nodes:
            node.start()
        self.wait_ready()

    # --- tgctl ---

    def _node(self, node):
        return self.nodes[node] if isinstance(node, int) else node

    def _environment(self, node):
        return os.environ | {"TGCTL_ADDRESS": self._node(node).address} | ({"TGCTL_KEY": self.key_file} if self.key_file else {})

    def keygen(self, *arguments):
        subprocess.run([TGCTL, "keygen", *arguments], cwd=self.folder, check=True, capture_output=True, timeout=PATIENCE)

    def ctl(self, *arguments, node=0, patience=None):
        """tgctl, asking that node: exit code, stdout, stderr. Its deadline is of the clock: it is asked again where it, or the
        node, had to wait for a processor."""
        for _ in range(3):
            elapsed = Elapsed()
            answer = self._asked(arguments, node, PATIENCE if patience is None else patience)
            if "no tgd answers" not in answer.err or elapsed.excused() < 1:
                break
        return answer

    def _asked(self, arguments, node, patience):
        command = self._node(node).prefix + [TGCTL, *map(str, arguments)]
        with subprocess.Popen(
            command,
            env=self._environment(node),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as process:
            out, err = communicate(process, patience)
        return Answer(process.returncode, out, err)

    def ctl_ok(self, *arguments, node=0, patience=None):
        answer = self.ctl(*arguments, node=node, patience=patience)
        if answer.code != 0:
            raise AssertionError(f"tgctl {' '.join(map(str, arguments))} at {self._node(node).name} ended with {answer.code}: {answer.err}{answer.out}")
        return answer

    def job_file(self, job):
        keys = SMALL_JOB | {key.replace("_", "-"): value for key, value in (job or {}).items()}
        handle, path = tempfile.mkstemp(suffix=".job", dir=self.folder)
        with os.fdopen(handle, "w") as file:
            file.writelines(f"{key} = {value}\n" for key, value in keys.items() if value is not None)
        return path

    def follow(self, *arguments, node=0):
        """A tgctl of its own that is not waited for yet."""
        node = self._node(node)
        follower = Follower(node.prefix + [TGCTL, *map(str, arguments)], self._environment(node))
        self.followers.append(follower)
        return follower

    def start(self, job=None, node=0, patience=None):
        """Starts a run and follows it to a good end; its id."""
        answer = self.ctl_ok("start", self.job_file(job), node=node, patience=patience)
        return answer.out.strip()

    def detach(self, job=None, node=0):
        """Starts a run and leaves it; its id."""
        return self.ctl_ok("start", self.job_file(job), "--detach", node=node).out.strip()

    def status(self, *run, node=0):
        return json.loads(self.ctl_ok("status", *run, "--json", node=node).out)

    def run(self, run, node=0):
        """The run's part of status --json."""
        runs = self.status(run, node=node)["runs"]
        if len(runs) != 1:
            raise AssertionError(f"status of {run} at {self._node(node).name} has {len(runs)} runs")
        return runs[0]

    def wait_for_step(self, run, step, node=0):
        return wait_until(
            lambda: f"run {run} at step {step}: {self.run(run, node)}", lambda: self.run(run, node)["step"] >= step
        )

    def wait_ended(self, run):
        """Until every member is shown as ended: the asked node may be the first one that is."""
        wait_until(lambda: f"all members of {run} have ended: {self.run(run)}", lambda: all(member["state"] in FINAL for member in self.run(run)["members"]))

    def wait_whole(self, run, without=None):
        """After a restart: until each node has every member's own part of this run; `without`: one that has none."""
        for node in self.nodes:
            wait_until(
                lambda: f"{node.name} (log {node.log}) has all members' digests of {run}: {self.run(run, node)}",
                lambda: all(member["digest"] or member["node"] == without for member in self.run(run, node)["members"]),
            )

    def fetch(self, run, *options, node=0):
        """Fetches into a new folder; its path."""
        folder = tempfile.mkdtemp(prefix="fetched-", dir=self.folder)
        self.ctl_ok("fetch", run, "-o", folder, *options, node=node)
        return folder
