#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The package ring_torch before its library is loaded: how torch finds it, and a torch that it was
not built for."""
import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import ring_torch
from ring_torch import _built

PACKAGE = pathlib.Path(ring_torch.__file__).parent


def run(text, folder=None):
    """A program in a Python of its own, which finds the package in `folder`."""
    env = {**os.environ, "PYTHONPATH": str(folder or PACKAGE.parent)}
    return subprocess.run([sys.executable, "-c", text], env=env, timeout=300, text=True,
                          capture_output=True)


def copy_to(folder):
    copy = pathlib.Path(folder) / "ring_torch"
    copy.mkdir()
    for file in PACKAGE.glob("*.py"):
        shutil.copyfile(file, copy / file.name)
    for file in PACKAGE.glob("_C*"):
        (copy / file.name).symlink_to(file)
    return copy


class Package(unittest.TestCase):
    def test_both_groups_of_entry_points_name_it(self):
        for group in ("torch.backends", "torch.distributed.backends"):
            found = [point for point in importlib.metadata.entry_points(group=group)
                     if point.name == "ring"]
            self.assertEqual([point.value for point in found], ["ring_torch:register"])
            self.assertIs(found[0].load(), ring_torch.register)

    def test_torch_finds_it_without_an_import(self):
        done = run("import sys, torch.distributed as dist\n"
                   "store = dist.HashStore()\n"
                   "dist.init_process_group('ring', store=store, rank=0, world_size=1)\n"
                   "print(dist.get_backend())\n"
                   "dist.destroy_process_group()\n")
        self.assertEqual((done.stdout, done.returncode), ("ring\n", 0), done.stderr)

    def test_the_library_is_loaded_by_the_first_use(self):
        done = run("import sys, torch, ring_torch\n"
                   "print('ring_torch._C' in sys.modules)\n"
                   "ring_torch.memory_stats()\n"
                   "print('ring_torch._C' in sys.modules)\n")
        self.assertEqual((done.stdout, done.returncode), ("False\nTrue\n", 0), done.stderr)

    def test_another_torch_is_one_line_with_both_versions(self):
        with tempfile.TemporaryDirectory() as folder:
            (copy_to(folder) / "_built.py").write_text('TORCH = "2.99.1"\n')
            done = run("import torch, ring_torch\n"
                       "import torch.distributed as dist\n"
                       "try:\n"
                       "    dist.init_process_group('ring', store=dist.HashStore(), rank=0,\n"
                       "                            world_size=1)\n"
                       "except ImportError as error:\n"
                       "    print(torch.__version__, error, sep='|')\n", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        version, text = done.stdout.split("|")
        self.assertEqual(text, "ring_torch was built for torch 2.99.1 and cannot be used with "
                               f"torch {version}: install libring-torch again\n")

    def test_another_patch_of_the_same_minor_version_is_taken(self):
        with tempfile.TemporaryDirectory() as folder:
            minor = ".".join(_built.TORCH.split(".")[:2])
            (copy_to(folder) / "_built.py").write_text(f'TORCH = "{minor}.77"\n')
            done = run("import ring_torch; print(ring_torch.memory_stats()['requests'])", folder)
        self.assertEqual((done.stdout, done.returncode), ("0\n", 0), done.stderr)

    def test_an_unusable_torch_does_not_break_its_import(self):
        done = run("import sys\n"
                   "sys.modules['torch.distributed'] = None\n"
                   "import warnings\n"
                   "warnings.simplefilter('ignore')\n"
                   "import ring_torch\n"
                   "ring_torch.register()\n"
                   "print('here')\n")
        self.assertEqual((done.stdout, done.returncode), ("here\n", 0), done.stderr)


if __name__ == "__main__":
    unittest.main()
