"""Every mistake a new user makes gets one clear line on stderr and the right exit code."""

import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import threading
import unittest

from addresses import free_port_pair, own_loopback_address
from asking import FINAL, TGCTL, Answer
from files import PNG, write_idx
from mesh import Mesh
from node import TGD
from patience import PATIENCE, wait_until

MNIST = {"data": "mnist", "data-train": None, "data-test": None}
USAGE, UNREACHABLE, NO_SUCH_RUN = 2, 3, 4


class Client(unittest.TestCase):
    def tgctl(self, *arguments, address=None):
        environment = os.environ | {"TGCTL_ADDRESS": address or "127.0.0.1:9"}
        done = subprocess.run([TGCTL, *arguments], env=environment, capture_output=True, text=True, timeout=60)
        return Answer(done.returncode, done.stdout, done.stderr)

    def setUp(self):
        self.host = own_loopback_address()
        self.nobody = f"{self.host}:{free_port_pair(self.host) + 1}"


class NoMesh(Client):
    def test_no_daemon(self):
        for arguments in (["status"], ["stop", "x"], ["fetch", "x", "-o", "/nowhere"]):
            with self.subTest(arguments=arguments):
                self.tgctl(*arguments, address=self.nobody).refuses(UNREACHABLE, self.nobody, "TGCTL_ADDRESS")

    def test_the_name_does_not_resolve(self):
        self.tgctl("--address", "no-such-host.invalid:7701", "status").refuses(UNREACHABLE, "the name no-such-host.invalid does not resolve")

    def test_nothing_listens(self):
        self.tgctl("status", address=self.nobody).refuses(UNREACHABLE, "nothing listens there; is tgd running", "the mesh port + 1")

    def test_job_by_name(self):
        root = pathlib.Path(__file__).resolve().parents[2]

        def start(name, **more):
            done = subprocess.run([TGCTL, "--address", "127.0.0.1:1", "start", name], cwd=root, capture_output=True, text=True, timeout=60, **more)
            return Answer(done.returncode, done.stdout, done.stderr)

        for name, words in (("lenet", ["did you mean lenet-mnist or lenet-synthetic?"]),
                            ("lenet-mnits.job", ["did you mean lenet-mnist?"]),
                            ("something", ["cifarnet-cifar10, googlenet-imagenet-float32, googlenet-imagenet, lenet-mnist"])):  # fmt: skip
            with self.subTest(name=name):
                start(name).refuses(USAGE, f"{name} cannot be read", *words)
        for name in ("lenet-synthetic", "lenet-synthetic.job"):
            start(name).ends(UNREACHABLE, "using job deploy/jobs/lenet-synthetic.job\n")
        start("-", input="steps = 5\nstepz = 1\n").refuses(USAGE, 'stdin:2: unknown key "stepz"')
        start("-", input="steps = 5\n").refuses(UNREACHABLE, "no tgd answers at 127.0.0.1:1: ")
        start("-", input="x" * 1_000_000).refuses(USAGE, "stdin: ", "too long")

    def test_command_line(self):
        for arguments, words in (
            (["strat"], ["start"]),
            (["status", "--jsn"], ["--json"]),
            (["start"], ["JOB"]),
            (["frobnicate"], ["tgctl help lists them"]),
            (["fetch", "x", "-o", "-"], ["give a folder"]),
            (["start", "a.job", "--set", "steps", "100"], ["--set steps=VALUE"]),
            (["fetch", "x"], ["-o"]),
            (["wait", "x", "--for", "finishd"], ["COMPLETED"]),
            (["wait", "x", "--timeout", "soon"], ["soon"]),
            (["status", "a", "b"], ["b"]),
            (["start", "/no/such.job"], ["/no/such.job"]),
            (["start", "/"], ["/"]),
        ):
            with self.subTest(arguments=arguments):
                self.tgctl(*arguments, address=self.nobody).refuses(USAGE, *words)


class SilentPorts(Client):
    def test_something_else_listens(self):
        """A port that accepts and says nothing: another server's."""
        with socket.create_server((self.host, 0)) as server:
            self.tgctl("--address", address := f"{self.host}:{server.getsockname()[1]}", "status").refuses(UNREACHABLE, address)

    def test_another_server_answers(self):
        with socket.create_server((self.host, 0)) as server:
            def greet_all():
                connections = []  # open until the server closes: it waits for the client's words
                try:
                    while True:
                        connections.append(server.accept()[0])
                        connections[-1].sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
                except OSError:
                    for connection in connections:
                        connection.close()

            threading.Thread(target=greet_all, daemon=True).start()
            address = f"{self.host}:{server.getsockname()[1]}"
            self.tgctl("--address", address, "status").refuses(UNREACHABLE, address, 'the program that listens there is not a tgd: it says "SSH-2.0-OpenSSH_9.2p1"')

    def test_a_node_that_is_stopped(self):
        """It accepts connections, and says nothing: with keys as well it is not taken for another program."""
        for keys in (False, True):
            with self.subTest(keys=keys), Mesh(1, keys=keys) as mesh:
                mesh[0].signal(signal.SIGSTOP)
                for arguments in (["status"], ["start", mesh.job_file({}), "--dry-run"]):
                    answer = mesh.ctl(*arguments)
                    answer.refuses(UNREACHABLE, f"no tgd answers at {mesh[0].address}", "a tgd that is stopped or hangs", "kill -CONT", "or no tgd")
                mesh[0].signal(signal.SIGCONT)

    def test_a_peer_that_is_stopped(self):
        """The others say so of it, with keys as well, and do not take it for another program."""
        for keys in (False, True):
            with self.subTest(keys=keys), Mesh(2, keys=keys) as mesh:
                mesh[1].signal(signal.SIGSTOP)
                try:
                    wait_until("node-a knows", lambda: "sends nothing: it is stopped or hangs" in mesh.status()["nodes"][1]["problem"])
                    answer = mesh.ctl("start", mesh.job_file({"start-timeout": "3s"})).ends(5, "node-b", "it is stopped or hangs", "kill -CONT")
                    self.assertNotIn("or end that program", answer.err)
                    self.assertNotIn("has another cluster key", answer.err)
                finally:
                    mesh[1].signal(signal.SIGCONT)

    def test_addresses(self):
        for address in ("nonsense", "127.0.0.1", "127.0.0.1:port", "127.0.0.1:99999", ":7701"):
            with self.subTest(address=address):
                self.tgctl("--address", address, "status").refuses(USAGE, address)


class OneNode(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mesh = Mesh(1).__enter__()
        cls.addClassCleanup(cls.mesh.__exit__, None, None, None)

    def start(self, keys, *options):
        return self.mesh.ctl("start", self.mesh.job_file(keys), *options)

    def test_unknown_key(self):
        self.start({"stepz": 3}).refuses(USAGE, "stepz", '"steps"', ".job:")
        self.start({}, "--set", "global-bach=3").refuses(USAGE, "global-bach", "global-batch")
        self.start({"iterations": 3}).refuses(USAGE, "iterations", '"steps"', "tgctl help job")

    def test_fetch_into_a_file(self):
        run = self.mesh.start({"steps": 1})
        path = self.mesh.job_file({})
        self.mesh.ctl("fetch", run, "-o", path).refuses(USAGE, f"{path} is a file", "a folder")

    def test_bad_values(self):
        for key, value in (("steps", "many"), ("steps", "0"), ("model", "lenett"), ("learning-rate", "-1"), ("gradients", "binary")):
            with self.subTest(key=key, value=value):
                self.start({key: value}).refuses(USAGE, key, value)
        self.start({}, "--set", "steps").refuses(USAGE, "key=value")
        self.start({"data-dir": "~/mnist"}).refuses(USAGE, "data-dir", "~ is not expanded")
        self.start({"members": "node-a,node-b"}).refuses(USAGE, "members", "is not all, the only value")
        self.start({"schedule": "staircase"}).refuses(USAGE, "schedule-every")

    def test_same_key_twice(self):
        job = self.mesh.job_file({})
        with open(job, "a") as file:
            file.write("steps = 4\n")
        self.mesh.ctl("start", job).refuses(USAGE, "steps", "again")

    def test_byte_order_mark(self):
        path = os.path.join(self.mesh.folder, "windows.job")
        with open(self.mesh.job_file({"steps": 1}), "rb") as file:
            text = file.read().replace(b"\n", b"\r\n")
        with open(path, "wb") as file:
            file.write(b"\xef\xbb\xbf" + text)
        self.mesh.ctl_ok("start", path)
        with open(path, "wb") as file:
            file.write(text.decode().encode("utf-16"))
        self.mesh.ctl("start", path).refuses(USAGE, path, "UTF-16", "save it as UTF-8")

    def test_picture_as_job(self):
        path = os.path.join(self.mesh.folder, "picture.job")
        with open(path, "wb") as file:
            file.write(PNG)
        self.mesh.ctl("start", path).refuses(USAGE, path)

    def test_run_id_typo(self):
        for arguments in (["status", "lenet-typo"], ["stop", "lenet-typo"], ["wait", "lenet-typo"], ["logs", "lenet-typo"],
                          ["fetch", "lenet-typo", "-o", os.path.join(self.mesh.folder, "out")], ["status", "what is this"]):  # fmt: skip
            with self.subTest(arguments=arguments):
                self.mesh.ctl(*arguments).refuses(NO_SUCH_RUN, arguments[1])

    def test_unknown_node_of_logs(self):
        run = self.mesh.start({"steps": 1})
        answer = self.mesh.ctl("logs", run, "--node", "node-q")
        self.assertNotEqual(answer.code, 0)
        self.assertIn("node-q", answer.err)

    def test_stop_takes_the_active_run(self):
        for name in ("first-1", "first-2"):
            self.mesh.ctl_ok("start", self.mesh.job_file({"steps": 1}), "--id", name)
        self.mesh.ctl_ok("start", self.mesh.job_file({"steps": 100000}), "--id", "first-0", "--detach")
        self.mesh.ctl_ok("stop", "first")
        self.assertEqual(self.mesh.run("first-0")["state"], "STOPPED")

    def test_dry_run_says_the_steps(self):
        job = self.mesh.job_file({"steps": 7, "epochs": 2, "data-dir": "/srv/mnist"})
        answer = self.mesh.ctl_ok("start", job, "--dry-run")
        self.assertRegex(answer.out, r"steps +32, 2 epochs of 16 steps\n")
        self.assertRegex(answer.err, rf"warning: {job}:\d+: steps = 7 has no effect: it is for runs without epochs; epochs is 2 \(line \d+\)\n")
        self.assertIn("data-dir = /srv/mnist has no effect: it is for data that are read from files; data is synthetic", answer.err)

    def test_initial_takes_a_safetensors_file(self):
        self.start({"initial": "/srv/lenet-20261127-2330-ab12"}).refuses(USAGE, "node-a: initial: cannot read /srv/lenet-", "takes a .safetensors file")

    def test_unwritable_output_is_an_error(self):
        run = self.mesh.start({"steps": 2})
        for arguments in (["--help"], ["--version"], ["help", "job"], ["status"], ["status", "--json"], ["status", run], ["list"], ["logs", run], ["version"],
                          ["wait", run], ["stop", run], ["fetch", run, "-o", os.path.join(self.mesh.folder, "full")],
                          ["start", self.mesh.job_file({}), "--dry-run"], ["start", self.mesh.job_file({"steps": 2}), "--detach"]):  # fmt: skip
            with self.subTest(arguments=arguments), open("/dev/full", "w") as full:
                done = subprocess.run([TGCTL, *arguments], env=os.environ | {"TGCTL_ADDRESS": self.mesh[0].address}, stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=60)  # fmt: skip
                self.assertEqual(done.returncode, 1, done)
                self.assertIn("tgctl: cannot write to stdout: No space left on device", done.stderr)
        wait_until("no run goes on", lambda: all(one["state"] in FINAL for one in self.mesh.status()["runs"]))

    def test_a_mesh_port_is_no_control_port(self):
        address = f"{self.mesh[0].host}:{self.mesh[0].port}"
        self.mesh.ctl("--address", address, "status").refuses(UNREACHABLE, "control port (the mesh port + 1)")


class BadData(unittest.TestCase):
    """Two nodes; what one of them lacks is said with its name, wherever the run was started."""

    def start(self, mesh, keys=None, node=0):
        return mesh.ctl("start", mesh.job_file(MNIST | (keys or {})), node=node)

    def test_missing_and_wrong_files(self):
        with Mesh(2) as mesh:
            good = os.path.join(mesh.folder, "good")
            write_idx(good)
            self.start(mesh).refuses(USAGE, "node-", "data-dir", "mnist")

            missing = os.path.join(mesh.folder, "missing")
            self.start(mesh, {"data-dir": missing}).refuses(USAGE, "node-", missing)

            empty = os.path.join(mesh.folder, "empty")
            os.makedirs(empty)
            self.start(mesh, {"data-dir": empty}).refuses(USAGE, "node-", empty, "MNIST")

            # Only node-b lacks it.
            mesh.configure(0, data_dir=good)
            mesh.configure(1, data_dir=missing)
            mesh.restart()
            for asked in (0, 1):
                self.start(mesh, node=asked).refuses(USAGE, "node-b", missing)

            picture = os.path.join(mesh.folder, "picture")
            write_idx(picture)
            path = os.path.join(picture, "train-images-idx3-ubyte")
            with open(path, "wb") as file:
                file.write(PNG)
            answer = self.start(mesh, {"data-dir": picture})
            self.assertIn(answer.code, (1, USAGE), answer)
            answer.refuses(answer.code, "node-", path)

            letters = os.path.join(mesh.folder, "letters")
            write_idx(letters)
            path = os.path.join(letters, "train-labels-idx1-ubyte")
            with open(path, "r+b") as file:
                file.seek(-1, os.SEEK_END)
                file.write(bytes([26]))
            self.start(mesh, {"data-dir": letters}).refuses(USAGE, "node-", path, "labels up to 26", "another set, such as EMNIST")
            # Nothing of all that is left over.
            mesh.start(MNIST | {"data-dir": good, "steps": 2})

            # More memory than a node has.
            mesh.configure(1, memory_mib=1)
            mesh.restart()
            answer = mesh.ctl("start", mesh.job_file({"steps": 2}))
            self.assertNotIn(answer.code, (0, USAGE), answer)
            answer.refuses(answer.code, "node-b", "1 MiB are allowed", "memory-mib")
            mesh.configure(1, memory_mib=2000)
            mesh.restart()
            job = {"steps": 2, "link-mbps": 10000, "checkpoint-every": "0s"}  # wide windows, and no copy that can be done without
            mesh.start(job)
            # What any exchange needs is there, what the chosen one needs is not.
            printed = int(re.findall(r"memory-bytes=(\d+)", mesh[1].log_text())[-1])
            mesh.configure(1, memory_mib=printed >> 20)
            mesh.restart()
            answer = mesh.ctl("start", mesh.job_file(job))
            answer.ends(5, "node-b", f"{printed >> 20} MiB are allowed", "memory-mib", "was chosen")  # begun on the others
            mesh.start(job | {"link-mbps": 100})


class BadNode(unittest.TestCase):
    """tgd itself, given what it cannot use: it ends at once."""

    def setUp(self):
        self.mesh = Mesh(1)
        self.addCleanup(self.mesh.__exit__, None, None, None)

    def tgd(self, *arguments, environment=None):
        done = subprocess.run([TGD, *arguments], env=os.environ | (environment or {}), capture_output=True, text=True, timeout=20)
        return Answer(done.returncode, done.stdout, done.stderr)

    def with_line(self, line):
        path = os.path.join(self.mesh.folder, "bad.conf")
        with open(self.mesh[0].config) as file:
            text = file.read()
        with open(path, "w") as file:
            file.write(text + line + "\n")
        return self.tgd("--config", path), f"{path}:{len(text.splitlines()) + 1}"

    def test_bad_lines(self):
        for line, words in (
            ("thread = 3", ["thread", "threads"]),
            ("kernels = avx3", ["kernels", "avx3"]),
            ("insecure = maybe", ["insecure", "maybe"]),
            ("data-dir", ["data-dir"]),
            ("peer = node-b", ["peer", "node-b"]),
            ("peer = node-b@10.0.0.1:99999", ["peer", "99999"]),
            ("fault = kill@somewhere", ["fault"]),
            ("log-level = loud", ["log-level", "loud"]),
        ):
            with self.subTest(line=line):
                answer, place = self.with_line(line)
                answer.refuses(USAGE, place, *words)

    def test_data_dir_that_is_not_there(self):
        """--check-config says so, and a node that starts all the same logs it at once."""
        self.mesh.configure(0, data_dir="/srv/mnsit")
        self.tgd("--config", self.mesh[0].config, "--check-config").refuses(USAGE, "data-dir = /srv/mnsit: No such file or directory")
        with self.mesh:
            self.assertIn("event=configuration", self.mesh[0].log_text())
            self.assertIn("/srv/mnsit", self.mesh[0].log_text())

    def test_own_address_that_this_machine_lacks(self):
        """The same words from --check-config, the log and status."""
        self.mesh.configure(0, listen="127.0.0.1", insecure="true")
        with open(self.mesh[0].config) as file:
            text = file.read()
        with open(self.mesh[0].config, "w") as file:
            file.write(text.replace(f"peer = node-a@{self.mesh[0].host}:", "peer = node-a@192.0.2.7:") + f"peer = node-b@127.0.0.1:{free_port_pair('127.0.0.1')}\n")
        problem = "this node's peer line says 192.0.2.7, which is not an address of this machine"
        self.tgd("--config", self.mesh[0].config, "--check-config").refuses(USAGE, problem)
        self.mesh[0].host = "127.0.0.1"
        self.mesh[0].start()
        wait_until("node-a answers", lambda: self.mesh.ctl("status").code == 0)
        self.assertIn(problem, self.mesh[0].log_text())
        self.assertIn(problem, self.mesh.status()["nodes"][0]["problem"])
        self.mesh[0].end()

    def checked(self):
        return self.tgd("--config", self.mesh[0].config, "--check-config")

    def test_key_file_that_cannot_be_used(self):
        path = os.path.join(self.mesh.folder, "cluster.key")
        self.mesh.configure(0, key_file=path)
        self.checked().refuses(USAGE, f"key-file: {path}: the key file cannot be read: No such file or directory")
        self.mesh.keygen(path)
        self.assertEqual(self.checked().code, 0)
        os.chmod(path, 0o644)
        self.checked().refuses(USAGE, f"chmod 600 {path}")
        os.chmod(path, 0o600)
        self.mesh.keygen(path, "--operator", "alice")
        self.mesh.configure(0, key_file=os.path.join(self.mesh.folder, "alice.key"))
        self.checked().refuses(USAGE, "alice.key is an operator's key file")

    def test_a_key_that_cannot_be_written_leaves_no_file(self):
        path = os.path.join(self.mesh.folder, "full.key")
        self.mesh.keygen(path)
        for arguments in (["--rotate", "add"], ["--operator", "dora"]):
            full = subprocess.run([TGCTL, "keygen", path, *arguments], cwd=self.mesh.folder, capture_output=True, text=True, timeout=PATIENCE,
                                  restore_signals=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))  # fmt: skip
            self.assertEqual(full.returncode, 1, full.stderr)
            self.assertIn("cannot be written: File too large", full.stderr)
            self.mesh.keygen(path, *arguments)

    def test_peer_whose_name_does_not_resolve(self):
        with open(self.mesh[0].config, "a") as file:
            file.write("peer = node-b@node-b.invalid:7700\n")
        line = len(open(self.mesh[0].config).readlines())
        self.checked().refuses(USAGE, f"{self.mesh[0].config}:{line}: peer node-b: node-b.invalid does not resolve", "correct the peer line")

    def test_unknown_phase_of_a_fault(self):
        self.with_line("fault = kill@breakfast:3")[0].refuses(USAGE, "breakfast")

    def test_no_file(self):
        self.tgd("--config", "/no/such.conf").refuses(USAGE, "/no/such.conf")
        self.tgd("--confg", "x").refuses(USAGE, "--config")
        self.tgd().refuses(USAGE, "tgd --config tgd.conf", "tgctl help node")

    def test_beyond_loopback_without_insecure(self):
        path = os.path.join(self.mesh.folder, "open.conf")
        with open(path, "w") as file:
            file.write(f"node = node-a\npeer = node-a@10.1.2.3:7700\nlisten = 0.0.0.0\nstate-dir = {self.mesh.folder}/s\n")
        self.tgd("--config", path).refuses(USAGE, "insecure = true")

    def test_port_in_use(self):
        node = self.mesh[0]
        for port, what in ((node.port, "mesh"), (node.port + 1, "control")):
            with self.subTest(port=what), socket.create_server((node.host, port)):
                self.tgd("--config", node.config).refuses(1, str(port), "in use")

    def test_two_nodes_with_one_state_dir(self):
        self.mesh.__enter__()
        port = free_port_pair(self.mesh[0].host)
        path = os.path.join(self.mesh.folder, "twin.conf")
        with open(path, "w") as file:
            file.write(f"node = twin\npeer = twin@{self.mesh[0].host}:{port}\nstate-dir = {self.mesh[0].state_dir}\nengine = cpu\n")
        self.tgd("--config", path).refuses(1, self.mesh[0].state_dir)

    def test_state_dir_that_cannot_be_made(self):
        self.tgd("--config", self.mesh[0].config, "--state-dir", "/proc/nothing").refuses(1, "/proc/nothing")

    def test_good_configuration(self):
        answer = self.tgd("--config", self.mesh[0].config, "--check-config")
        self.assertEqual((answer.code, answer.err), (0, ""), answer)


if __name__ == "__main__":
    unittest.main()
