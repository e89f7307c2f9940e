"""Tests that mostly wait: several of a case go on at the same time. Both functions end the process."""

import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

AT_A_TIME = 4


def _run(case, one, first):
    names = sorted(unittest.TestLoader().getTestCaseNames(case), key=lambda name: name not in first)
    failed = []
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for name, (is_well, said) in zip(names, pool.map(one, names)):
            print(f"{name}: {'ok' if is_well else 'FAILED'}\n{said}".rstrip(), flush=True)
            failed += [] if is_well else [name]
    print(f"{len(names)} tests" if names else "there are no tests")
    return f"failed: {', '.join(failed)}" if failed else 0 if names else 1


def in_processes(case, words, first=()):
    """`words`: the script and what it was given; behind them it takes the name of a test. `first` are the long ones."""
    def one(name):
        # A file, and no pipe: the end of a pipe comes only when all processes that the test left behind have ended.
        with tempfile.TemporaryFile("w+", errors="replace") as said:
            done = subprocess.run([sys.executable, *words, f"{case.__name__}.{name}"], stdout=said,
                                  stderr=subprocess.STDOUT, check=False)
            said.seek(0)
            return done.returncode == 0, said.read()

    sys.exit(_run(case, one, first))


def in_threads(case, first=()):
    """For tests that share nothing but what their class has made."""
    def one(name):
        result = unittest.TestResult()
        case(name)(result)
        return result.wasSuccessful() and result.testsRun == 1, "\n".join(
            [said for _, said in result.errors + result.failures] + [f"skipped: {why}" for _, why in result.skipped])

    case.setUpClass()
    try:
        status = _run(case, one, first)
    finally:
        case.tearDownClass()
    sys.exit(status)
