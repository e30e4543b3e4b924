# SPDX-License-Identifier: Apache-2.0
"""Fetches the Debian packages that a guest needs and the host may lack: the kernel, and programs
that run only in guests. They are unpacked in the build tree, because installing some of them would
start services on the host."""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

HOST_TOOLS = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static",
              "cpio": "cpio", "depmod": "kmod", "ssh-keygen": "openssh-client",
              "setpriv": "util-linux"}
GUEST_PACKAGES = ["openssh-server", "iproute2", "procps", "kmod", "perftest", "ibverbs-utils",
                  "ibverbs-providers", "rdmacm-utils"]
KERNEL_PARTS = ["./boot/vmlinuz-*", "./lib/modules/*/modules.*"] + [
    f"./lib/modules/*/kernel/{part}" for part in (
        "arch", "crypto", "lib", "net", "fs/9p", "fs/configfs", "fs/fscache", "fs/netfs",
        "fs/overlayfs", "drivers/virtio", "drivers/infiniband", "drivers/net/dummy.ko",
        "drivers/net/net_failover.ko", "drivers/net/veth.ko", "drivers/net/virtio_net.ko")]
MERGED = ("bin", "lib", "lib64", "sbin")  # links into /usr, as on the host
LOCK_SECONDS = 300
FETCH_SECONDS = 240


class Missing(Exception):
    """Guests cannot be had here; the text says why."""


def search_path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"


def tool(name):
    return shutil.which(name, path=search_path())


def check_tools():
    missing = {package for name, package in HOST_TOOLS.items() if not tool(name)}
    if os.uname().machine != "x86_64":
        raise Missing(f"guests are x86_64, this machine is {os.uname().machine}")
    if missing:
        raise Missing("not installed: " + " ".join(sorted(missing)))


def command(words, **more):
    """Runs a command and returns its output; Missing with its last words if it fails."""
    result = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            timeout=FETCH_SECONDS, env=dict(os.environ, PATH=search_path()),
                            check=False, **more)
    if result.returncode != 0:
        last = (result.stdout.strip().splitlines() or ["no message"])[-1]
        raise Missing(f"{' '.join(words[:2])}: {last}")
    return result.stdout


def unpack(package, folder, *options):
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package],
                          stdout=subprocess.PIPE) as archive:
        command(["tar", "-x", "-C", str(folder), "--no-same-owner", "--keep-directory-symlink",
                 *options], stdin=archive.stdout)


def fetch_kernel(folder, apt):
    depends = command(["apt-cache", *apt, "depends", "linux-image-amd64"])
    newest = re.search(r"Depends: (linux-image-\d\S*-amd64)", depends)
    if not newest:
        raise Missing("apt knows no package linux-image-amd64")
    command(["apt-get", *apt, "download", newest.group(1)], cwd=folder)
    kernel = folder / "kernel"
    kernel.mkdir()
    unpack(next(folder.glob("linux-image-*.deb")), kernel, "--wildcards", *KERNEL_PARTS)
    version = next((kernel / "lib/modules").iterdir()).name
    command(["depmod", "-b", str(kernel), version])


def fetch_programs(folder, apt):
    """Makes a layer over the host's files with the programs that are not installed there."""
    command(["apt-get", *apt, "-y", "--no-install-recommends", "--download-only", "install",
             *GUEST_PACKAGES])
    layer = folder / "layer"
    for name in MERGED:
        (layer / "usr" / name).mkdir(parents=True)
        (layer / name).symlink_to(f"usr/{name}")
    for package in folder.glob("archives/*.deb"):
        unpack(package, layer)


def fetch(folder, lists):
    """Into a fresh folder, by these package lists of apt."""
    (folder / "archives/partial").mkdir(parents=True)
    apt = ["-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=", "-o", f"Dir::Cache={folder}"]
    if lists:
        (lists / "partial").mkdir(parents=True)
        apt += ["-o", f"Dir::State::Lists={lists}"]
        command(["apt-get", *apt, "update"])
    fetch_kernel(folder, apt)
    fetch_programs(folder, apt)


def fetch_either(folder):
    """By the lists of this machine or, if those are missing or old, by new ones of our own."""
    if not tool("apt-get"):
        raise Missing("there is no apt-get, which fetches Debian's kernel")
    try:
        fetch(folder / "a", None)
        return folder / "a"
    except Missing:
        fetch(folder / "b", folder / "lists")
        return folder / "b"


def locked(file):
    end = time.monotonic() + LOCK_SECONDS
    while time.monotonic() < end:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.2)
    raise Missing(f"{file.name} was locked for {LOCK_SECONDS} s")


def unpacked(build):
    """The folder with kernel/ and layer/, made once for a build tree."""
    home = Path(build) / "vm"
    ready = home / "unpacked"
    if ready.is_dir():
        return ready
    home.mkdir(parents=True, exist_ok=True)
    with open(home / "lock", "w", encoding="ascii") as file:
        locked(file)
        if not ready.is_dir():
            with tempfile.TemporaryDirectory(dir=home) as temporary:
                fresh = fetch_either(Path(temporary))
                for rest in ("archives", "*.deb", "*.bin"):
                    for path in fresh.glob(rest):
                        shutil.rmtree(path) if path.is_dir() else path.unlink()
                fresh.rename(ready)
    return ready
