# SPDX-License-Identifier: Apache-2.0
"""The torch of this Python. As a program it prints torch's version; its folder; the headers of
Python; the suffix of its modules. The build of a wheel asks it what the wheel depends on."""
import importlib.util
import pathlib
import re
import sys
import sysconfig


def find():
    """torch's version and folder. Nothing of it is run."""
    spec = importlib.util.find_spec("torch")
    if spec is None:
        sys.exit(f"{sys.executable} finds no torch: install it there first, and use "
                 "pip install --no-build-isolation")
    folder = pathlib.Path(spec.submodule_search_locations[0])
    text = (folder / "version.py").read_text(encoding="utf-8")
    return re.search(r"__version__ = '([0-9.]+)", text).group(1), folder


def dynamic_metadata(field, _settings=None, *_):
    """Asked by scikit-build-core. c10d's classes change with each minor version of torch."""
    assert field == "dependencies"
    major, minor = find()[0].split(".")[:2]
    return [f"torch=={major}.{minor}.*"]


if __name__ == "__main__":
    print(*find(), sysconfig.get_paths()["include"], sysconfig.get_config_var("EXT_SUFFIX"),
          sep=";")
