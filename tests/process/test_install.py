"""What is installed: every file in its place, manual pages that man takes without a word, and completions that complete, in
the shells that people have, with runs and nodes of a living mesh."""

import gzip
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time
import unittest

from asking import TGCTL
from mesh import Mesh
from node import TGD
from patience import PATIENCE, Elapsed

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["TGD_BUILD"])
PROMPT = r"READY> (\x1b\[\?2004h)?$"  # and the shell's wish that the terminal brackets what is pasted
PAGES = ("man1/tgctl.1.gz", "man8/tgd.8.gz", "man5/tgd.conf.5.gz", "man5/tgd.job.5.gz")


def installed(prefix):
    subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.prefix = pathlib.Path(tempfile.mkdtemp(prefix="tgd-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.prefix)
        installed(cls.prefix)
        cls.share = cls.prefix / "share"

    def environment(self, **more):
        return os.environ | {"PATH": f"{self.prefix}/bin:{os.environ['PATH']}"} | more

    def test_files_and_no_others(self):
        found = {str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*") if path.is_file()}
        jobs = {f"share/tgd/jobs/{path.name}" for path in (ROOT / "deploy/jobs").glob("*.job")}
        completions = {"share/bash-completion/completions/tgctl", "share/bash-completion/completions/tgd", "share/zsh/site-functions/_tgctl"}
        pages = {f"share/man/{page}" for page in PAGES}
        if (BUILD / "engine" / "tgd-cuda.so").exists():  # where CUDA is, and it was built
            modules = {path for path in found if path.endswith("/tgd/tgd-cuda.so")}
            self.assertEqual(len(modules), 1)
            found -= modules
        self.assertEqual(found, {"bin/tgd", "bin/tgctl", "share/tgd/tgd.conf", "share/doc/tgd/LICENSE"} | jobs | completions | pages)

    def test_both_programs_say_the_build_of_these_sources(self):
        wanted = subprocess.run(["cmake", "-P", ROOT / "cmake/TgdBuildId.cmake"], capture_output=True, text=True, check=True).stdout.strip()
        said = {name: subprocess.run([self.prefix / "bin" / name, "--version"], capture_output=True, text=True, check=True).stdout for name in ("tgd", "tgctl")}
        self.assertRegex(said["tgd"], rf"^tgd {re.escape(wanted)}, protocol \d+, oneDNN \S+ \S+, kernels \w+(, .*)?\n$")  # of a device, where its module is installed
        self.assertRegex(said["tgctl"], rf"^tgctl {re.escape(wanted)}, protocol \d+\n$")

    def test_manual_pages_are_in_order(self):
        for program in ("man", "mandoc"):
            if shutil.which(program) is None:
                self.skipTest(f"{program} is not installed")
        for page in PAGES:
            path = self.share / "man" / page
            with self.subTest(page=page):
                lint = subprocess.run(["mandoc", "-Tlint", "-Wall"], input=gzip.decompress(path.read_bytes()), capture_output=True)
                self.assertEqual((lint.returncode, lint.stdout.decode()), (0, ""))
                shown = subprocess.run(["man", "--warnings", "-l", path], capture_output=True, text=True, env=self.environment(MANWIDTH="80", LC_ALL="C.UTF-8"))
                self.assertEqual((shown.returncode, shown.stderr), (0, ""))
                self.assertIn("SEE ALSO", shown.stdout)

    def test_the_script_knows_its_options(self):
        unknown = subprocess.run([ROOT / "deploy/install-tgd", "--perfix", "x"], capture_output=True, text=True)
        self.assertEqual((unknown.returncode, unknown.stdout), (2, ""))
        self.assertIn("unknown option --perfix", unknown.stderr)
        self.assertIn("--prefix DIR", subprocess.run([ROOT / "deploy/install-tgd", "--help"], capture_output=True, text=True, check=True).stdout)


class Shell:
    """An interactive shell on a terminal, and what it shows."""

    def __init__(self, arguments, environment, folder):
        self.shown = ""
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.chdir(folder)
            os.execvpe(arguments[0], arguments, environment)

    def type(self, text):
        self.shown = ""
        os.write(self.terminal, text.encode())

    def wait(self, pattern):
        """Until it shows this; what it has shown."""
        deadline = time.monotonic() + PATIENCE
        while not re.search(pattern, self.shown):
            if not select.select([self.terminal], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"{pattern} is not shown: {self.shown!r}")
            self.shown += os.read(self.terminal, 4096).decode(errors="replace")
        return self.shown

    def close(self):
        os.kill(self.child, 9)
        os.waitpid(self.child, 0)
        os.close(self.terminal)


class Completions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mesh = Mesh(2).__enter__()
        cls.addClassCleanup(cls.mesh.__exit__, None, None, None)
        cls.run_id = cls.mesh.ctl_ok("start", cls.mesh.job_file({"steps": 2}), "--id", "first-of-all").out.strip()
        cls.prefix = pathlib.Path(cls.mesh.folder) / "installed"
        installed(cls.prefix)
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="tgd-complete-", dir=cls.mesh.folder))
        (cls.folder / "own.job").write_text("steps = 1\n")
        (cls.folder / "other.txt").write_text("")
        (cls.folder / "folder").mkdir()

    def environment(self, **more):
        own = {"PATH": f"{self.prefix}/bin:{os.environ['PATH']}", "TGCTL_ADDRESS": self.mesh[0].address, "PS1": "READY> ", "TERM": "dumb", "HOME": str(self.folder)}
        return {key: value for key, value in os.environ.items() if not key.startswith("TGCTL")} | own | more

    def offered(self, line, **more):
        """What the bash script offers at the end of this line."""
        script = f'''source {self.prefix}/share/bash-completion/completions/tgctl
            COMP_LINE=$1 COMP_POINT=${{#1}}
            _tgctl "${{1%% *}}"
            printf '%s\\n' "${{COMPREPLY[@]}}"'''
        done = subprocess.run(["bash", "--norc", "-c", script, "-", line], cwd=self.folder, env=self.environment(**more), capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return sorted(done.stdout.split())

    def test_bash(self):
        for line, wanted in (
            ("tgctl sta", ["start", "status"]),
            ("tgctl status ", [self.run_id]),
            ("tgctl stop fir", [self.run_id]),
            ("tgctl stop second", []),
            ("tgctl logs @l", ["@last"]),
            (f"tgctl logs {self.run_id} --node ", ["node-a", "node-b"]),
            (f"tgctl logs {self.run_id} --node=node-", ["node-a", "node-b"]),
            ("tgctl start o", ["own.job"]),
            ("tgctl start own.job --set optimizer=s", ["sgd"]),
            ("tgctl start own.job --set optim", ["optimizer="]),
            ("tgctl fetch x -o ", ["folder"]),
            ("tgctl --key o", ["other.txt", "own.job"]),
            ("tgd --check", ["--check-config"]),
            ("tgd --kernels=sc", ["scalar"]),
            ("tgd --config o", ["other.txt", "own.job"]),
        ):
            with self.subTest(line=line):
                self.assertEqual(self.offered(line), wanted)
        jobs = self.offered("tgctl start ")
        self.assertIn("lenet-mnist", jobs)
        self.assertIn("own.job", jobs)
        self.assertNotIn("other.txt", jobs)

    def test_an_installed_job_by_its_name(self):
        done = subprocess.run(["tgctl", "start", "lenet-synthetic", "--dry-run"], cwd=self.folder, env=self.environment(), capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stderr.splitlines()[0]), (0, f"using job {self.prefix}/share/tgd/jobs/lenet-synthetic.job"))

    def test_nobody_answers(self):
        """No word, and no waiting: the shell is the user's."""
        elapsed = Elapsed()
        self.assertEqual(self.offered("tgctl stop ", TGCTL_ADDRESS="127.0.0.1:9"), [])
        self.assertEqual(self.offered("tgctl --address no-such-host.invalid:7701 stop "), [])
        self.assertEqual(self.offered("tgctl stop ", TGCTL_KEY="/no/such/file"), [])
        self.assertLess(elapsed.seconds(), 3 * 5)

    def type_in(self, shell):
        shell.wait(PROMPT)
        shell.type("tgctl comple\t")
        shell.wait("tgctl completion ")
        shell.type("\x15tgctl stop fir\t")
        shell.wait(f"tgctl stop {self.run_id} ")
        shell.type("\x15tgctl logs @l\t")
        shell.wait("@last ")
        shell.type("\x15tgctl start own.job --set optimizer=mo\t")
        shell.wait("optimizer=momentum")

    def test_bash_on_a_terminal(self):
        shell = Shell(["bash", "--norc", "-i"], self.environment(), self.folder)
        self.addCleanup(shell.close)
        shell.wait(PROMPT)
        shell.type(f"bind 'set enable-bracketed-paste off'; source {self.prefix}/share/bash-completion/completions/tgctl\n")
        self.type_in(shell)

    def test_zsh_on_a_terminal(self):
        if shutil.which("zsh") is None:
            self.skipTest("zsh is not installed")
        script = self.prefix / "share/zsh/site-functions/_tgctl"
        subprocess.run(["zsh", "-n", script], check=True)
        shell = Shell(["zsh", "-f", "-i"], self.environment(PROMPT="READY> "), self.folder)
        self.addCleanup(shell.close)
        shell.wait(PROMPT)
        shell.type(f"unsetopt zle_bracketed_paste; fpath=({script.parent} $fpath); autoload -U compinit; compinit -u -D; bindkey '^U' kill-whole-line; PROMPT='READY> '\n")
        self.type_in(shell)


if __name__ == "__main__":
    unittest.main()
