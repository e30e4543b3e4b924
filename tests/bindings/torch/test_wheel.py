#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel of libring-torch, built as users build it and used in an environment of its own: from a
checkout, and against an installed libring. Usage: test_wheel.py SOURCE BUILD"""
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

TORCH = pathlib.Path(importlib.util.find_spec("torch").origin).parent
SKIPPED = 77
# Libraries of the system and of torch; the wheel brings the others.
OF_SYSTEM = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libpthread.so.0",
             "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
OF_TORCH = {"libc10.so", "libtorch_cpu.so", "libtorch_python.so"}
TWO_RANKS = """
import os, sys, torch, torch.distributed as dist
rank = int(sys.argv[1])
dist.init_process_group("ring", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
tensor = torch.full((1000,), rank + 1.0)
dist.all_reduce(tensor)
assert bool((tensor == 3).all())
libraries = {line.split()[-1] for line in open("/proc/self/maps") if "libring.so" in line}
assert len(libraries) == 1, libraries
print(libraries.pop())
dist.destroy_process_group()
"""


def run(*command, **options):
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(word) for word in command], env=env, text=True, timeout=1500,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}:\n{done.stdout[-6000:]}")
    return done.stdout


def environment(folder):
    """A venv with the torch of this Python, which is not installed once more. Its Python."""
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    packages = run(python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])")
    (pathlib.Path(packages.strip()) / "torch_of_another.pth").write_text(f"{TORCH.parent}\n")
    return python


def needed(library):
    return set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-dW", library)))


def newest_symbol(library, prefix):
    found = re.findall(rf"\b{prefix}_([0-9.]+)", run("readelf", "-VW", library))
    return max(found, key=lambda v: [int(n) for n in v.split(".")], default="none")


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.work = pathlib.Path(cls.folder.name)
        cls.builder = environment(cls.work / "builder")
        try:
            run(cls.builder, "-m", "pip", "install", "-q", "scikit-build-core", "ninja")
        except AssertionError as error:
            print(f"SKIPPED: pip cannot install scikit-build-core and ninja here: {error}")
            sys.stdout.flush()
            os._exit(SKIPPED)

    def wheel(self, name, *options):
        folder = self.work / name
        run(self.builder, "-m", "pip", "wheel", "-v", "--no-build-isolation", "--no-deps", *options,
            "-w", folder, SOURCE / "libring" / "bindings" / "torch")
        wheels = list(folder.glob("*.whl"))
        self.assertEqual(len(wheels), 1)
        with zipfile.ZipFile(wheels[0]) as archive:
            archive.extractall(folder)
        print(f"{wheels[0].name}: {wheels[0].stat().st_size / 1024:.0f} KiB")
        return wheels[0], folder

    def use(self, wheel, name):
        """Two ranks in a bare environment. Where their libring lies."""
        python = environment(self.work / name)
        run(python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel)
        store = self.work / f"{name}.store"
        ranks = [subprocess.Popen([python, "-c", TWO_RANKS, str(rank), store], text=True,
                                  cwd=self.work, stdout=subprocess.PIPE,
                                  env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"})
                 for rank in range(2)]
        try:
            outputs = [rank.communicate(timeout=300)[0] for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
        self.assertEqual([rank.returncode for rank in ranks], [0, 0])
        return pathlib.Path(outputs[0].strip())

    def judge_libraries(self, folder, brought):
        for library in sorted((folder / "ring_torch").glob("*.so*")):
            others = needed(library) - OF_SYSTEM - OF_TORCH
            print(f"  {library.name}: {library.stat().st_size / 1024:.0f} KiB, needs "
                  f"{' '.join(sorted(needed(library)))}; GLIBC {newest_symbol(library, 'GLIBC')}, "
                  f"GLIBCXX {newest_symbol(library, 'GLIBCXX')}")
            self.assertLessEqual(others, brought, library.name)

    def judge_metadata(self, folder):
        info = next(folder.glob("*.dist-info"))
        metadata, points = ((info / name).read_text() for name in ("METADATA", "entry_points.txt"))
        version = re.search(r"__version__ = '(\d+\.\d+)", (TORCH / "version.py").read_text())
        self.assertEqual(re.findall("^Requires-Dist: (.*)", metadata, re.M),
                         [f"torch=={version.group(1)}.*"])
        for group in ("[torch.backends]", "[torch.distributed.backends]"):
            self.assertIn(f"{group}\nring = ring_torch:register", re.sub(" *= *", " = ", points))

    def test_from_a_checkout_it_carries_all_it_needs(self):
        wheel, folder = self.wheel("checkout")
        files = {path.name for path in (folder / "ring_torch").iterdir()}
        self.assertLessEqual({"__init__.py", "registration.py", "shared_memory.py", "_built.py"},
                             files)
        self.judge_metadata(folder)
        self.judge_libraries(folder, files)
        for library in (folder / "ring_torch").glob("*.so*"):
            paths = re.findall(r"(?:RPATH|RUNPATH).*\[(.*)\]", run("readelf", "-dW", library))
            self.assertLessEqual(set(paths), {"$ORIGIN"}, library.name)
        self.assertEqual(self.use(wheel, "bare").parent.name, "ring_torch")

    def test_against_an_installed_libring(self):
        prefix = self.work / "prefix"
        run("cmake", "--install", BUILD, "--prefix", prefix)
        wheel, folder = self.wheel("installed", "-C", "cmake.source-dir=.", "-C",
                                   f"cmake.define.CMAKE_PREFIX_PATH={prefix}")
        self.judge_metadata(folder)
        self.assertEqual(list((folder / "ring_torch").glob("libring*")), [])
        self.assertIn(prefix, self.use(wheel, "bare2").parents)


if __name__ == "__main__":
    SOURCE, BUILD = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
