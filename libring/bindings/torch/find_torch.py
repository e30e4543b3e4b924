# SPDX-License-Identifier: Apache-2.0
"""Finds the torch of this Python, for the build. As a program it prints torch's version, torch's
folder, the folder of Python's headers and the suffix of Python's modules, separated by semicolons.
As a metadata provider it tells scikit-build-core which torch the wheel depends on."""
import importlib.util
import pathlib
import re
import sys
import sysconfig


def find():
    """Returns torch's version and folder, without importing torch."""
    spec = importlib.util.find_spec("torch")
    if spec is None:
        sys.exit(f"{sys.executable} cannot find torch: install torch for this Python first, and "
                 "use pip install --no-build-isolation")
    folder = pathlib.Path(spec.submodule_search_locations[0])
    text = (folder / "version.py").read_text(encoding="utf-8")
    return re.search(r"__version__ = '([0-9.]+)", text).group(1), folder


def dynamic_metadata(field, _settings=None, *_):
    """Returns the wheel's dependencies; scikit-build-core calls it. A wheel needs the minor version
    of torch that it was built with, because c10d's classes change in each of them."""
    assert field == "dependencies"
    major, minor = find()[0].split(".")[:2]
    return [f"torch=={major}.{minor}.*"]


if __name__ == "__main__":
    print(*find(), sysconfig.get_paths()["include"], sysconfig.get_config_var("EXT_SUFFIX"),
          sep=";")
