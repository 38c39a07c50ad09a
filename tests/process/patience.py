"""Waiting for what the programs themselves say, with a deadline; nothing sleeps and hopes."""

import os
import subprocess
import time

# Seconds until something that normally takes moments counts as a failure; sanitizers need more.
PATIENCE = float(os.environ.get("TGD_PATIENCE", "60"))
POLL_SECONDS, OFTEN = 0.05, 40  # after so many looks it is looked less often: each may be a tgctl of its own


def waited_for_a_processor():
    """Seconds since the machine started in which something that could run had to wait for a processor."""
    try:
        with open("/proc/pressure/cpu") as pressure:
            return int(pressure.readline().rsplit("total=", 1)[1]) / 1e6
    except (OSError, IndexError):
        return 0.0  # not a kernel that counts it: all time counts


class Elapsed:
    """The seconds since it was made, without those in which the machine had more to run than processors: what the
    programs promise holds where they may run. A quarter counts always, so that a wait has an end."""

    def __init__(self):
        self._begun, self._waited = time.monotonic(), waited_for_a_processor()

    def seconds(self):
        whole = time.monotonic() - self._begun
        return max(whole - (waited_for_a_processor() - self._waited), whole / 4)

    def excused(self):
        """The seconds that do not count."""
        return time.monotonic() - self._begun - self.seconds()


def wait_until(what, condition, patience=None):
    """The condition's first true value. `what` is a text, or a function that makes one when the time is over."""
    patience = PATIENCE if patience is None else patience
    elapsed, looks = Elapsed(), 0
    while True:
        value, looks = condition(), looks + 1
        if value:
            return value
        if elapsed.seconds() > patience:
            raise AssertionError(f"{what() if callable(what) else what}: not within {patience:g} s")
        time.sleep(POLL_SECONDS if looks < OFTEN else 4 * POLL_SECONDS)


def communicate(process, patience):
    """What it has said when it ends; killed, with what it said so far in the error, when it has had that time to run."""
    elapsed = Elapsed()
    while True:
        try:
            return process.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            if elapsed.seconds() > patience:
                process.kill()
                out, err = process.communicate()
                raise AssertionError(f"{' '.join(process.args)} did not end within {patience:g} s: {out} {err}") from None
