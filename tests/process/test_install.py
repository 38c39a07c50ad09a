"""What is installed: every file in its place, manual pages that man takes without a warning and that name every option and key,
and completions that complete, in the shells that people have."""

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
from node import TGD
from patience import PATIENCE

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["TGD_BUILD"])
PROMPT = r"READY> (\x1b\[\?2004h)?$"  # and the shell's wish that the terminal brackets what is pasted
PAGES = ("man1/tgctl.1.gz", "man8/tgd.8.gz", "man5/tgd.conf.5.gz", "man5/tgd.job.5.gz")
PAGES_ARE_BUILT = all((BUILD / "pages" / page.split("/")[1]).exists() for page in PAGES)  # with help2man, by the target pages
OPTION = re.compile(r"^ +(?:-[a-z], )?(--[a-z-]+)", re.M)


def said(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout


def verbs():
    """tgctl's verbs, as its help has them, without help itself."""
    return sorted(set(re.findall(r"^  ([a-z]+) ", said(TGCTL, "--help"), re.M)) - {"help"})


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
        pages = {f"share/man/{page}" for page in PAGES} if PAGES_ARE_BUILT else set()
        if (BUILD / "engine" / "tgd-cuda.so").exists():  # where CUDA is, and it was built
            modules = {path for path in found if path.endswith("/tgd/tgd-cuda.so")}
            self.assertEqual(len(modules), 1)
            found -= modules
        self.assertEqual(found, {"bin/tgd", "bin/tgctl", "share/tgd/tgd.conf", "share/doc/tgd/LICENSE"} | jobs | completions | pages)

    def test_both_programs_say_the_build_of_these_sources(self):
        wanted = subprocess.run(["cmake", "-P", ROOT / "cmake/TgdBuildId.cmake"], capture_output=True, text=True, check=True).stdout.strip()
        said = {name: subprocess.run([self.prefix / "bin" / name, "--version"], capture_output=True, text=True, check=True).stdout for name in ("tgd", "tgctl")}
        self.assertRegex(said["tgd"], rf"^tgd {re.escape(wanted)}, protocol \d+, oneDNN \S+ \S+, kernels \w+(, .*)?\n$")  # a device's, where its module is installed
        self.assertRegex(said["tgctl"], rf"^tgctl {re.escape(wanted)}, protocol \d+\n$")

    @unittest.skipUnless(PAGES_ARE_BUILT, "no manual pages were built: the target pages, which needs help2man")
    def test_manual_pages_are_in_order(self):
        for program in ("man", "mandoc"):
            if shutil.which(program) is None:
                self.skipTest(f"{program} is not installed")
        shown = {}
        for page in PAGES:
            path = self.share / "man" / page
            with self.subTest(page=page):
                lint = subprocess.run(["mandoc", "-Tlint", "-Wwarning"], input=gzip.decompress(path.read_bytes()), capture_output=True)
                complaints = [line for line in lint.stdout.decode().splitlines() if "cannot parse date" not in line]  # help2man's: a month
                self.assertEqual(complaints, [])
                shown[page] = subprocess.run(["man", "--warnings", "-l", path], capture_output=True, text=True, env=self.environment(MANWIDTH="80", LC_ALL="C.UTF-8"))
                self.assertEqual((shown[page].returncode, shown[page].stderr), (0, ""))
                self.assertIn("SEE ALSO", shown[page].stdout)
        wanted = {PAGES[0]: [option for verb in verbs() for option in OPTION.findall(said(TGCTL, "help", verb))] + ["TGCTL_ADDRESS"],
                  PAGES[1]: OPTION.findall(said(TGD, "--help")) + ["SIGTERM"]}
        wanted |= {page: re.findall(r"^#?[a-z0-9-]+ =", said(TGCTL, "help", what), re.M) for page, what in ((PAGES[2], "node"), (PAGES[3], "job"))}
        for page, words in wanted.items():
            self.assertGreater(len(words), 20)
            self.assertEqual([word for word in words if word not in shown[page].stdout], [], page)

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
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="tgd-complete-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.prefix = cls.folder / "installed"
        installed(cls.prefix)
        (cls.folder / "own.job").write_text("steps = 1\n")

    def environment(self, **more):
        own = {"PATH": f"{self.prefix}/bin:{os.environ['PATH']}", "PS1": "READY> ", "TERM": "dumb", "HOME": str(self.folder)}
        return {key: value for key, value in os.environ.items() if not key.startswith("TGCTL")} | own | more

    def offered(self, *words):
        """What the bash script offers in place of the last word."""
        script = f'''source {self.prefix}/share/bash-completion/completions/tgctl
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            _tgd_complete "$1" "${{COMP_WORDS[-1]}}" "${{COMP_WORDS[-2]}}"
            printf '%s\\n' "${{COMPREPLY[@]}}"'''
        done = subprocess.run(["bash", "--norc", "-c", script, "-", *words], cwd=self.folder, env=self.environment(), capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return sorted(done.stdout.split())

    def test_every_verb_and_option(self):
        self.assertEqual(self.offered("tgctl", ""), sorted([*verbs(), "help"]))
        for verb in verbs():
            self.assertEqual(self.offered("tgctl", verb, "-"), sorted(OPTION.findall(said(TGCTL, "help", verb))), verb)
        self.assertEqual(self.offered("tgd", "-"), sorted(OPTION.findall(said(TGD, "--help"))))
        keys = re.findall(r"^#?([a-z0-9-]+) =", said(TGCTL, "help", "job"), re.M)
        self.assertEqual(self.offered("tgctl", "start", "own.job", "--set", ""), sorted(f"{key}=" for key in keys))

    def test_bash(self):
        for words, wanted in (
            (("tgctl", "sta"), ["start", "status"]),
            (("tgctl", "--address", "10.0.0.1", ":", "7701", "sto"), ["stop"]),
            (("tgctl", "--addr"), ["--address"]),
            (("tgctl", "help", "jo"), ["job", "join"]),
            (("tgctl", "logs", "@"), ["@last"]),
            (("tgctl", "start", "own.job", "--set", "optim"), ["optimizer="]),
            (("tgctl", "start", "o"), []),  # the shell's files
            (("tgd", "--check"), ["--check-config"]),
            (("tgd", "recompute", "--thr"), ["--threads"]),
        ):
            with self.subTest(words=words):
                self.assertEqual(self.offered(*words), wanted)

    def test_an_installed_job_by_its_name(self):
        done = subprocess.run(["tgctl", "start", "lenet-synthetic", "--address", "127.0.0.1:9"], cwd=self.folder, env=self.environment(), capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stderr.splitlines()[0]), (3, f"using job {self.prefix}/share/tgd/jobs/lenet-synthetic.job"))

    def type_in(self, shell):
        shell.wait(PROMPT)
        shell.type("tgctl compa\t")
        shell.wait("tgctl compare ")
        shell.type("\x15tgctl start o\t")
        shell.wait("tgctl start own.job ")
        shell.type("\x15tgctl logs @l\t")
        shell.wait("@last ")
        shell.type("\x15tgctl start own.job --set optim\t")
        shell.wait("--set optimizer=")
        shell.type("\x15tgd --check\t")
        shell.wait("tgd --check-config ")

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
