#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the tests that a run of ctest skipped, each with its reasons.

    tests/skipped.py REPORT      REPORT is what ctest --output-junit wrote

A test that cannot run prints "SKIPPED: reason" and exits with 77. ./check and sanitize.py show this
list after ctest's summary, which has names only.
"""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree


def skipped_in(report):
    """@return (name, reasons) of each test that ctest skipped. A run that began no test writes no
    report."""
    if not Path(report).is_file():
        return
    for test in ElementTree.parse(report).iter("testcase"):
        skip = test.find("skipped")
        if skip is not None and skip.get("message", "").startswith("SKIP_"):
            found = re.findall(r"SKIPPED: (.*)", test.findtext("system-out") or "")
            yield test.get("name"), list(dict.fromkeys(found))


def show(report):
    tests = list(skipped_in(report))
    if tests:
        print(f"Skipped here: {len(tests)} {'test' if len(tests) == 1 else 'tests'}")
    for name, reasons in tests:
        print(f"  {name}: {'; '.join(reasons) or 'it printed no reason'}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    show(sys.argv[1])
