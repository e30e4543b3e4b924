# SPDX-License-Identifier: Apache-2.0
"""Finds the libraries that are compared (builds of libring, MPIs and Gloo), compiles programs with
them, and makes the commands that start ranks.

Each rank is bound to a core if there are enough. Open MPI, MPICH and Gloo are Debian's packages;
Intel MPI comes from PyPI.
"""

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
CFLAGS = ["-O3", "-std=gnu11", "-D_GNU_SOURCE", f"-I{HERE.parent}"]
TIMEOUT = 600
PACKAGES = {"cc": "gcc", "c++": "g++"}  # packages of Debian by command


class Absent(Exception):
    """A contender cannot take part, because something is not installed; the text says what."""


class Failed(Exception):
    """A program has failed; the text states the reason."""


def reason(done):
    """@return the first line of output that contains "error", or else the last line."""
    lines = (done.stderr or done.stdout).strip().splitlines()
    return next((line for line in lines if "error" in line.lower()),
                lines[-1] if lines else "no message")


def run(command, environment=None):
    """Runs a program to its end. @return its standard output. Raises Failed if it fails."""
    command = [str(word) for word in command]
    try:
        done = subprocess.run(command, env={**os.environ, **(environment or {})},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=TIMEOUT)
    except OSError as error:
        package = PACKAGES.get(command[0])
        raise Failed(f"{command[0]}: {error.strerror}" +
                     (f"; install {package}" if package else "")) from None
    except subprocess.TimeoutExpired:
        raise Failed(f"{command[0]}: did not end within {TIMEOUT} s") from None
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: status {done.returncode}: {reason(done)}")
    return done.stdout


def json_lines(text):
    """@return the lines that are JSON objects. Launchers may print other lines as well."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def check_header(compiler, language, header, package):
    """Raises Absent, with the package to install, if the compiler does not find the header."""
    try:
        run([compiler, "-fsyntax-only", "-include", header, "-x", language, "/dev/null"])
    except Failed as error:
        raise Absent(f"{header} is not installed; install {package}" if f"{header}:" in str(error)
                     else error) from None


def binding(ranks):
    """@return the launchers' word for binding: "core", or "none" if there are too few cores."""
    return "core" if ranks <= len(os.sched_getaffinity(0)) else "none"


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


# ---- libring ------------------------------------------------------------------------------


def cached_source(build):
    """@return the source folder of a build folder; None for an installed prefix."""
    try:
        lines = (build / "CMakeCache.txt").read_text().splitlines()
    except OSError:
        return None
    named = [line.split("=", 1)[1] for line in lines
             if line.startswith("CMAKE_HOME_DIRECTORY:")]
    return Path(named[0]) if named else None


class Build:
    """libring in a build folder, or installed under a prefix."""

    def __init__(self, name, folder):
        self.name, self.folder = name, Path(folder).resolve()
        self.ringrun, self.ringperf, self.ringlimit = (
            self.folder / "bin" / program for program in ("ringrun", "ringperf", "ringlimit"))

    def need(self, *programs):
        for program in programs:
            if not program.exists():
                raise Absent(f"{program} is not built")

    def places(self):
        """@return the folder with ring/ring.h, and the folder with the library."""
        source = cached_source(self.folder)
        include = source / "libring" / "include" if source else self.folder / "include"
        found = [library for pattern in ("libring.so", "lib*/libring.so", "lib/*/libring.so")
                 for library in self.folder.glob(pattern)]
        if not found or not (include / "ring" / "ring.h").exists():
            raise Absent(f"{self.folder}: neither a build folder of libring nor a prefix with it")
        return include, found[0].parent

    def compile(self, program, *sources):
        include, library = self.places()
        run(["cc", *CFLAGS, f"-I{include}", "-o", program, *sources, f"-L{library}",
             f"-Wl,-rpath,{library}", "-lring", "-lm"])

    def start(self, ranks, *command):
        return [self.ringrun, "-n", ranks, f"--bind-to={binding(ranks)}", *command]


# ---- MPI ----------------------------------------------------------------------------------


class Mpi:
    """An MPI whose compiler and launcher are in PATH under names of their own."""

    def __init__(self, name, compilers, launchers, packages, bind_option, crowd=(), options=()):
        self.name, self.compilers, self.launchers = name, compilers, launchers
        self.packages = packages  # the package with compiler and headers, and that of the launcher
        self.bind_option, self.crowd, self.options = bind_option, crowd, options
        self.environment = {}

    def find(self):
        self.compiler = next(filter(None, map(shutil.which, self.compilers)), None)
        self.launcher = next(filter(None, map(shutil.which, self.launchers)), None)
        for found, names, package in zip((self.compiler, self.launcher),
                                         (self.compilers, self.launchers), self.packages):
            if not found:
                raise Absent(f"{' or '.join(names)} is not installed; install {package}")
        check_header(self.compiler, "c", "mpi.h", self.packages[0])

    def compile(self, program, *sources):
        self.find()
        run([self.compiler, *CFLAGS, "-o", program, *sources, "-lm"])

    def start(self, ranks, *command):
        # The option also makes Open MPI's ranks yield, so it is given only if ranks share cores.
        crowd = self.crowd if binding(ranks) == "none" else []
        return [self.launcher, *crowd, *self.options, self.bind_option, binding(ranks),
                "-n", ranks, *command]


def intel_home():
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("I_MPI_ROOT") or Path(cache) / "libring" / "impi")


class IntelMpi:
    """Intel MPI under a prefix. The compiler scripts of its wheels do not know this prefix, so the
    compiler is called directly."""

    name = "impi"

    def __init__(self, prefix=None):
        self.prefix = Path(prefix) if prefix else intel_home()
        self.launcher = self.prefix / "bin" / "mpiexec.hydra"
        # Without I_MPI_FABRICS it would open network providers, too.
        self.environment = {"I_MPI_ROOT": str(self.prefix), "I_MPI_FABRICS": "shm"}

    def install(self):
        """Installs PyPI's wheels in a virtual environment, if they are not installed."""
        if not self.launcher.exists():
            try:
                venv.create(self.prefix, with_pip=True)
            except (OSError, subprocess.CalledProcessError) as error:
                raise Failed(f"cannot create a virtual environment in {self.prefix}: {error}; "
                             "install python3-venv") from None
            run([self.prefix / "bin" / "pip", "install", "--quiet", "impi-rt", "impi-devel"])

    def compile(self, program, *sources):
        if not self.launcher.exists() or not (self.prefix / "include" / "mpi.h").exists():
            raise Absent(f"Intel MPI is not under {self.prefix}; --install-impi installs it there")
        library = self.prefix / "lib"
        run(["cc", *CFLAGS, f"-I{self.prefix / 'include'}", "-o", program, *sources,
             f"-L{library}", f"-Wl,-rpath,{library}", "-lmpi", "-lm"])

    def start(self, ranks, *command):
        bind = (["I_MPI_PIN_DOMAIN", "core"] if binding(ranks) == "core" else ["I_MPI_PIN", "0"])
        return [self.launcher, "-genv", *bind, "-n", ranks, *command]


# ---- Gloo ---------------------------------------------------------------------------------


class Gloo:
    """Gloo of Debian's libgloo-dev. It has no launcher, because the program forks its ranks."""

    name = "gloo"

    def compile(self, program, source):
        check_header("c++", "c++", "gloo/allreduce.h", "libgloo-dev")
        run(["c++", "-O3", "-std=c++17", f"-I{HERE.parent}", "-o", program, source, "-lgloo",
             "-lpthread"])


# ---- MPIs by name -------------------------------------------------------------------------


def open_mpi(name="openmpi", options=()):
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return Mpi(name, ["mpicc.openmpi"], ["mpirun.openmpi"],
               ["libopenmpi-dev", "openmpi-bin"], "--bind-to", ["--oversubscribe"],
               [*root, *options])


def mpich():
    return Mpi("mpich", ["mpicc.mpich"], ["mpiexec.mpich", "mpiexec.hydra"],
               ["libmpich-dev", "mpich"], "-bind-to")


def add_intel_options(parser):
    parser.add_argument("--impi", metavar="PREFIX",
                        help=f"folder of Intel MPI (default: {intel_home()})")
    parser.add_argument("--install-impi", action="store_true",
                        help="first install Intel MPI in that folder, from PyPI (330 MB)")


def intel_mpi(options):
    found = IntelMpi(options.impi)
    if options.install_impi:
        found.install()
    return found
