"""`status --watch` on a real terminal: what it shows, its keys, and that the terminal is afterwards as it was, whatever
ended the view."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import unittest

from asking import TGCTL
from mesh import Mesh
from patience import wait_until

LONG = {"steps": 100_000, "evaluate-every": 20, "schedule": "constant"}
REDRAW = b"\x0c"
CONTROL = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b[=>78]|[\x00\x0e\x0f]")
TERMINALS = (("xterm-256color", "C.UTF-8"), ("vt100", "C"))


class Window:
    """A pseudo-terminal with `tgctl status --watch` in it."""

    def __init__(self, mesh, *arguments, term="xterm-256color", locale="C.UTF-8"):
        self.master, self.slave = pty.openpty()
        self.resize(120, 40)
        self.before = termios.tcgetattr(self.slave)
        self.taken = b""
        self.process = subprocess.Popen(
            [TGCTL, "status", "--watch", *arguments],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env=mesh._environment(0) | {"TERM": term, "LC_ALL": locale},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def resize(self, columns, lines):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def send(self, keys):
        os.write(self.master, keys)

    def take(self):
        while select.select([self.master], [], [], 0)[0]:
            self.taken += os.read(self.master, 65536)
        return CONTROL.sub(b"", self.taken).decode("utf-8", "replace")

    def shows(self, *words, without=None):
        """Waits until a whole screen has these words, as it is drawn anew each time."""

        def drawn():
            self.take()
            self.taken = b""
            self.send(REDRAW)
            try:
                wait_until("a screen", lambda: all(word in self.take() for word in words), patience=1)
            except AssertionError:
                return False
            return without is None or without not in self.take()

        wait_until(lambda: f"{words} on the screen, without {without}: {self.take()}", drawn)

    def ends(self, code):
        """Expects this exit status, and the terminal as it was."""
        wait_until("the view's end", lambda: (self.take(), self.process.poll())[1] is not None)
        if self.process.returncode != code:
            raise AssertionError(f"ended with {self.process.returncode}, not {code}: {self.take()}")
        if termios.tcgetattr(self.slave) != self.before:
            raise AssertionError("the terminal is not as it was")


class Watch(unittest.TestCase):
    def test_keys(self):
        with Mesh(2) as mesh:
            run = mesh.detach(LONG)
            mesh.wait_for_step(run, 3)
            for term, locale in TERMINALS:
                for arguments in ((), (run,)):
                    with self.subTest(term=term, arguments=arguments), Window(mesh, *arguments, term=term, locale=locale) as window:
                        window.shows(run, "RUNNING", "node-a: 2 of 2 nodes up", "of float32's 32 bits/parameter", "samples/s")
                        window.shows("steps 1 to ")  # also what came before this view
                        if locale == "C":
                            self.assertTrue(window.taken.isascii(), window.taken)
                        window.send(b"l")
                        window.shows(f"log of {run} at node-a", "event=")
                        window.send(b"q")
                        window.shows(run, "RUNNING", without="log of")
                        window.resize(40, 12)
                        window.shows("RUNNING", "? help  q quit")
                        window.send(b"?")
                        window.shows("choose a run")
                        window.send(b"\x1b")
                        window.shows("RUNNING")
                        window.send(b"q")
                        window.ends(0)

    def test_signals(self):
        with Mesh(1) as mesh:
            for term, locale in TERMINALS:
                for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGHUP), (signal.SIGABRT, -signal.SIGABRT)):
                    with self.subTest(term=term, signal=number), Window(mesh, term=term, locale=locale) as window:
                        window.shows("no runs yet")
                        if number == signal.SIGINT:
                            window.send(b"\x03")
                        else:
                            window.process.send_signal(number)
                        window.ends(code)
                        if term != "vt100":  # which has no second screen
                            self.assertIn(b"\x1b[?1049l", window.taken)

    def test_the_node_goes_away(self):
        """The view says so, still takes keys, and goes on when it is back."""
        with Mesh(1) as mesh:
            with Window(mesh) as window:
                window.shows("no runs yet")
                mesh[0].end()
                window.shows("no reply for", "retrying")
                window.send(b"?")
                window.shows("choose a run")
                window.send(b"q")
                mesh[0].start()
                window.shows("1 of 1 nodes up", without="no reply for")
                mesh[0].end()
                window.shows("no reply for")
                window.send(b"q")
                window.ends(0)
            with Window(mesh) as window:
                window.ends(3)
                self.assertIn("no tgd answers", window.take())
                self.assertNotIn(b"\x1b", window.taken, "nothing of a view")

    def test_where_no_view_is_possible(self):
        """Lines, as in a pipe."""
        with Mesh(1) as mesh:
            with Window(mesh, term="dumb") as window:
                wait_until("two answers", lambda: window.take().count("no runs") >= 2)
                self.assertNotIn(b"\x1b", window.taken)
                window.send(b"\x03")
                window.ends(130)


if __name__ == "__main__":
    unittest.main()
