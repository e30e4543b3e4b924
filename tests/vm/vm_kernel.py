# SPDX-License-Identifier: Apache-2.0
"""What a guest boots: Debian's kernel package, unpacked into a folder of the build tree, and a
first file system of busybox and the modules that reach the host's files."""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

TOOLS = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "cpio": "cpio",
         "depmod": "kmod", "rdma": "iproute2", "ibv_devinfo": "ibverbs-utils",
         "ib_write_bw": "perftest", "sshd": "openssh-server", "ssh-keygen": "openssh-client",
         "setpriv": "util-linux"}
# Without these the guest has no root; all others are loaded from there.
FIRST_MODULES = ["virtio_pci", "9pnet_virtio", "9p", "overlay"]
PARTS = ["./boot/vmlinuz-*", "./lib/modules/*/modules.*"] + [
    f"./lib/modules/*/kernel/{part}" for part in (
        "arch", "crypto", "lib", "net", "fs/9p", "fs/configfs", "fs/fscache", "fs/netfs",
        "fs/overlayfs", "drivers/virtio", "drivers/infiniband", "drivers/net/dummy.ko",
        "drivers/net/net_failover.ko", "drivers/net/veth.ko", "drivers/net/virtio_net.ko")]
LOCK_SECONDS = 300
FETCH_SECONDS = 240


class Missing(Exception):
    """Guests cannot be had here; the text says why."""


def search_path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"


def check_tools():
    missing = [package for tool, package in TOOLS.items()
               if not shutil.which(tool, path=search_path())]
    if os.uname().machine != "x86_64":
        raise Missing(f"guests are x86_64, this machine is {os.uname().machine}")
    if missing:
        raise Missing("not installed: " + " ".join(sorted(set(missing))))


def command(words, **more):
    """Runs a command and returns its output; Missing with its last words if it fails."""
    result = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            timeout=FETCH_SECONDS, env=dict(os.environ, PATH=search_path()),
                            check=False, **more)
    if result.returncode != 0:
        last = (result.stdout.strip().splitlines() or ["no message"])[-1]
        raise Missing(f"{' '.join(words[:2])}: {last}")
    return result.stdout


def newest_package(options):
    depends = command(["apt-cache", *options, "depends", "linux-image-amd64"])
    found = re.search(r"Depends: (linux-image-\d\S*-amd64)", depends)
    if not found:
        raise Missing("apt knows no package linux-image-amd64")
    return found.group(1)


def download(folder, options):
    command(["apt-get", *options, "-o", "APT::Sandbox::User=", "download",
             newest_package(options)], cwd=folder)
    return next(folder.glob("linux-image-*.deb"))


def fetch(folder):
    """The package by the lists of this machine or, if those are missing or old, by own ones."""
    if not shutil.which("apt-get"):
        raise Missing("no apt-get here, which fetches Debian's kernel")
    try:
        return download(folder, [])
    except Missing:
        lists = folder / "lists"
        (lists / "partial").mkdir(parents=True)
        options = ["-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={folder}"]
        command(["apt-get", *options, "-o", "APT::Sandbox::User=", "update"])
        return download(folder, options)


def unpack(package, folder):
    tar = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
    command(["tar", "-x", "-C", folder, "--no-same-owner", "--wildcards", *PARTS],
            stdin=tar.stdout)
    tar.stdout.close()
    tar.wait(timeout=FETCH_SECONDS)
    version = next((folder / "lib/modules").iterdir()).name
    command(["depmod", "-b", str(folder), version])


def locked(file):
    end = time.monotonic() + LOCK_SECONDS
    while time.monotonic() < end:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.2)
    raise Missing(f"{file.name} was locked for {LOCK_SECONDS} s")


def kernel(build):
    """The folder of the unpacked kernel, fetched once for a build tree."""
    home = Path(build) / "vm"
    ready = home / "kernel"
    if ready.is_dir():
        return ready
    home.mkdir(parents=True, exist_ok=True)
    with open(home / "lock", "w", encoding="ascii") as file:
        locked(file)
        if not ready.is_dir():
            with tempfile.TemporaryDirectory(dir=home) as temporary:
                fresh = Path(temporary) / "kernel"
                fresh.mkdir()
                unpack(fetch(Path(temporary)), fresh)
                fresh.rename(ready)
    return ready


def module_files(modules):
    """Paths of FIRST_MODULES and of what they need, in the order of loading."""
    needs = {}
    for line in (modules / "modules.dep").read_text(encoding="ascii").splitlines():
        path, _, rest = line.partition(":")
        needs[Path(path).stem.replace("-", "_")] = [*reversed(rest.split()), path]
    order = []
    for name in FIRST_MODULES:
        order += [path for path in needs.get(name, []) if path not in order]
    return order


def initrd(folder, image, init):
    """Writes the first file system to the file image."""
    modules = next((folder / "lib/modules").iterdir())
    files = module_files(modules)
    with tempfile.TemporaryDirectory(dir=image.parent) as temporary:
        root = Path(temporary)
        (root / "bin").mkdir()
        shutil.copy(shutil.which("busybox", path=search_path()), root / "bin/busybox")
        shutil.copy(init, root / "init")
        for path in files:
            shutil.copy(modules / path, root / Path(path).name)
        names = "".join(f"/{Path(path).name}\n" for path in files)
        (root / "modules.list").write_text(names, encoding="ascii")
        (root / "init").chmod(0o755)
        listing = "".join(f"{path.relative_to(root)}\n" for path in sorted(root.rglob("*")))
        with open(image, "wb") as out:
            subprocess.run(["cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0"], cwd=root,
                           input=listing.encode(), stdout=out, check=True, timeout=60)
