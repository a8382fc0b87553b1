"""Runs the cases of one file: suite.py test_execute [CASE...]. Prints one line per case in the format
of GoogleTest, which ./dev counts, and the counts at the end."""

import os
import signal
import sys
import time
import unittest


class _Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.passed = 0

    def startTest(self, test):
        super().startTest(test)
        self._started = time.monotonic()
        self._problems = len(self.failures) + len(self.errors)
        self._skips = len(self.skipped)
        print(f"[ RUN      ] {self._name(test)}", flush=True)

    def stopTest(self, test):
        super().stopTest(test)
        good = len(self.failures) + len(self.errors) == self._problems
        self.passed += good
        milliseconds = int(1000 * (time.monotonic() - self._started))
        verdict = "       OK " if good else "  FAILED  "
        if good and len(self.skipped) > self._skips:
            verdict = "  SKIPPED "
            print(f"{self._name(test)}: Skipped\n{self.skipped[-1][1]}")
        print(f"[{verdict}] {self._name(test)} ({milliseconds} ms)", flush=True)

    def addError(self, test, err):
        super().addError(test, err)
        print(self.errors[-1][1], flush=True)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        print(self.failures[-1][1], flush=True)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            problems = self.failures if issubclass(err[0], test.failureException) else self.errors
            print(subtest.id(), problems[-1][1], sep="\n", flush=True)

    @staticmethod
    def _name(test):
        return ".".join(test.id().split(".")[1:])


def main():
    started = time.monotonic()
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    module, *cases = sys.argv[1:]
    names = [f"{module}.{case}" for case in cases] or [module]
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    result = _Result()
    suite.run(result)
    failed = result.testsRun - result.passed
    # Failures of fixtures outside of cases belong to no case.
    outside = len(result.errors) + len(result.failures) if failed == 0 else 0
    print(f"{result.passed} passed, {failed + outside} failed, in "
          f"{time.monotonic() - started:.1f} s", flush=True)
    return 0 if result.wasSuccessful() and result.passed > 0 else 1


if __name__ == "__main__":
    # Ignored in the background of a shell, and by all that is started there: bash, which stands for the
    # console of a Windows server, could not even trap it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
