"""Runs test modules or classes given by name: `run_tests.py test_train test_deaths.Killed`. Exit status: 0 passed,
1 failed or nothing found, 77 when every test was skipped (ctest then says so), with the reasons on stderr. Says at its end
what its processes computed: on a busy machine a test's seconds say little."""

import os
import resource
import shutil
import signal
import sys
import unittest

SKIPPED = 77


def main(names):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # leaves every `with` on the way out
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    for variable in ("TGD", "TGCTL"):
        if shutil.which(os.environ.get(variable, "")) is None:
            sys.exit(f"the environment's {variable} names no program; ctest sets it")
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    if suite.countTestCases() == 0:
        sys.exit(f"no tests in {' '.join(names)}")
    result = unittest.TextTestRunner(verbosity=2, failfast=False).run(suite)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"processor time of its processes: {used.ru_utime + used.ru_stime:.1f} s", file=sys.stderr)
    if not result.wasSuccessful():
        return 1
    return SKIPPED if len(result.skipped) == result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
