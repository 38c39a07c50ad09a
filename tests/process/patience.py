"""Waiting for what the programs themselves say, with a deadline; nothing sleeps and hopes."""

import os
import time

# Seconds until something that normally takes moments counts as a failure; sanitizers and busy machines need more.
PATIENCE = float(os.environ.get("TGD_PATIENCE", "60"))
POLL_SECONDS = 0.05


def wait_until(what, condition, patience=None):
    """The condition's first true value. `what` is a text, or a function that makes one when the time is over."""
    patience = PATIENCE if patience is None else patience
    deadline = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what() if callable(what) else what}: not within {patience:g} s")
        time.sleep(POLL_SECONDS)
