# SPDX-License-Identifier: Apache-2.0
"""Prints torch's version; its folder; the headers of this Python; the suffix of its modules."""
import importlib.util
import pathlib
import re
import sys
import sysconfig

spec = importlib.util.find_spec("torch")
if spec is None:
    sys.exit("no torch")
folder = pathlib.Path(spec.submodule_search_locations[0])
version = re.search(r"__version__ = '([0-9.]+)", (folder / "version.py").read_text()).group(1)
print(version, folder, sysconfig.get_paths()["include"],
      sysconfig.get_config_var("EXT_SUFFIX"), sep=";")
