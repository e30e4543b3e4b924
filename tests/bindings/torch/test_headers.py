#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds ring_torch for other versions of torch, of which the headers are enough: their smallest
wheels (those for macOS) hold the same ones. Nothing is run. A version that pip cannot download is
skipped. Usage: test_headers.py SOURCE BUILD [VERSION...]"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

VERSIONS = ["2.9.1", "2.10.0", "2.11.0", "2.12.0", "2.14.1", "2.15.0"]
PLATFORMS = ["macosx_11_0_arm64", "macosx_14_0_arm64"]
LIBRARIES = ["libc10", "libtorch_cpu", "libtorch_python"]
SKIPPED = 77
MIB = 1 << 20


def run(*command, **options):
    return subprocess.run([str(word) for word in command], text=True, timeout=1500,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def download(version, folder):
    """Its wheel, or None after a line that says why."""
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    done = run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:",
               "--python-version", "3.11", *platforms, "-d", folder, f"torch=={version}")
    if done.returncode == 0:
        return next(folder.glob("*.whl"))
    reasons = [line for line in done.stdout.splitlines() if line.startswith("ERROR")]
    print(f"SKIPPED: torch {version} is not downloaded: {(reasons or ['pip failed'])[-1]}")
    return None


def unpack(wheel, folder):
    """A package torch of headers, its version, and libraries with nothing inside."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if name.startswith(
            ("torch/include/", "torch/version.py"))])
    wheel.unlink()
    (folder / "torch" / "__init__.py").write_text("")
    (folder / "torch" / "lib").mkdir()
    for library in LIBRARIES:
        path = folder / "torch" / "lib" / f"{library}.so"
        subprocess.run(["c++", "-shared", f"-Wl,-soname,{library}.so", "-o", path], check=True)


def build(source, prefix, folder):
    """None, or what the compiler says. Warnings are errors."""
    env = {**os.environ, "PYTHONPATH": str(folder)}
    done = run("cmake", "-G", "Ninja", "-S", source / "libring" / "bindings" / "torch",
               "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}", "-DRING_WERROR=ON",
               f"-DRING_PYTHON={sys.executable}", env=env)
    if done.returncode == 0:
        done = run("cmake", "--build", folder / "build", "-j", "2", env=env)
    return None if done.returncode == 0 else done.stdout


def check(version, source, prefix):
    """True: it builds; False: it does not; None: it was skipped."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if shutil.disk_usage(folder).free < 1000 * MIB:
            print(f"SKIPPED: torch {version}: less than 1000 MiB are left in {folder.parent}")
            return None
        wheel = download(version, folder)
        if wheel is None:
            return None
        unpack(wheel, folder)
        error = build(source, prefix, folder)
    print(f"torch {version}: builds" if error is None else f"torch {version}: FAILED\n{error}")
    return error is None


def main():
    source, tree = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as prefix:
        done = run("cmake", "--install", tree, "--prefix", prefix)
        if done.returncode != 0:
            sys.exit(done.stdout)
        outcomes = [check(version, source, prefix) for version in sys.argv[3:] or VERSIONS]
    if False in outcomes:
        return 1
    return 0 if True in outcomes else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
