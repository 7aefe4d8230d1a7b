"""Run rdma-core's own tests, as Debian installs them, on the device of a live fabric.

``make check-verbs`` calls this by Debian's Python, which has ``pyverbs``. Tests of librdmacm look
for a network interface of the device; here this is the loopback, whose address means the host that
listens. The output ends with a line of JSON: results, and reasons of skipped tests with counts.
"""

from __future__ import annotations

import collections
import gzip
import importlib
import json
import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

INSTALLED = Path("/usr/share/doc/rdma-core/tests")


def unpack(folder: Path) -> None:
    """Copy the tests, of which Debian compresses some."""
    (folder / "tests").mkdir()
    for path in INSTALLED.glob("*.py*"):
        name = folder / "tests" / path.name.removesuffix(".gz")
        if path.suffix == ".gz":
            name.write_bytes(gzip.decompress(path.read_bytes()))
        else:
            shutil.copy(path, name)


def main() -> None:
    """Run all tests, and print what came of them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        unpack(folder)
        sys.path[:0] = [str(folder), str(folder / "tests")]
        sys.argv[1:] = []
        exists = os.path.exists
        os.path.exists = lambda path: str(path).endswith("/device/net/") or exists(path)
        importlib.import_module("args_parser").parser.parse_args()
        base = importlib.import_module("tests.base")
        base.RDMATestCase.get_net_name = staticmethod(lambda device: "lo")
        modules = sorted(path.stem for path in (folder / "tests").glob("test_*.py"))
        suite = unittest.defaultTestLoader.loadTestsFromNames([f"tests.{name}" for name in modules])
        result = unittest.TextTestRunner(verbosity=2).run(suite)
    failed = sorted(test.id().rpartition(".")[2] for test, _ in result.failures + result.errors)
    reasons = collections.Counter(reason for _, reason in result.skipped)
    passed = result.testsRun - len(failed) - len(result.skipped)
    print(json.dumps({"passed": passed, "failed": failed, "skipped": dict(reasons.most_common())}))


if __name__ == "__main__":
    main()
