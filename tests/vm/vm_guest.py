# SPDX-License-Identifier: Apache-2.0
"""Guests under QEMU: started, given commands, unplugged, killed.

Wires, serial ports and monitors are socket pairs that a QEMU inherits, so nothing has a name in
a file system, and a QEMU that vanishes is seen by its other ends."""

import json
import os
import select
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import vm_kernel
import vm_packages

HERE = Path(__file__).resolve().parent
BOOT_SECONDS = 180
END_SECONDS = 60  # until the memory of a killed QEMU is freed
REPLY_SECONDS = 20  # for the monitor, and for the answer after a time-out


class Failed(Exception):
    """A guest or a command in it did not do what was asked; the text says what."""


class Job:
    """A command that runs in a guest, or has run."""

    def __init__(self, guest, number, script, seconds):
        self.guest, self.number, self.script = guest, number, script
        self.deadline = time.monotonic() + seconds + REPLY_SECONDS
        self.status = None
        self.path = guest.work / f"{guest.name}.{number}.out"

    @property
    def out(self):
        return self.path.read_text(errors="replace") if self.path.exists() else ""

    def wait(self, follow=None):
        """Until the command has ended; the bytes of its output go to follow as they come."""
        shown = 0
        while not self.ended():
            shown += self.show(shown, follow)
        self.show(shown, follow)
        return self

    def ended(self):
        """Whether it has, without waiting."""
        if self.status is None:
            self.guest.listen(self.deadline, f"'{self.script}'")
        return self.status is not None

    def show(self, shown, follow):
        if follow is None or not self.path.exists():
            return 0
        with open(self.path, "rb") as file:
            file.seek(shown)
            return follow.write(file.read())

    def must(self):
        """Waits; Failed with the output unless the command ended with 0."""
        self.wait()
        if self.status != 0:
            raise Failed(f"in {self.guest.name}: '{self.script}' ended with {self.status}:\n"
                         f"{self.out}")
        return self.out


class Guest:
    """One machine. Its name is a or b, its addresses are 10.88.NIC.1 or 10.88.NIC.2."""

    def __init__(self, name, lab, wires):
        self.name, self.work, self.programs = name, lab.work, lab.bin
        self.node, self.nics = lab.node(name), len(wires)
        self.jobs = {"ready": Job(self, "ready", "boot", BOOT_SECONDS)}
        self.serial, serial = socket.socketpair()
        self.monitor, monitor = socket.socketpair()
        self.monitor.settimeout(REPLY_SECONDS)
        self.buffer = b""
        inherited = [serial, monitor, *(wire for wire in wires if wire)]
        with open(self.work / f"{name}.qemu", "wb") as said:
            self.process = subprocess.Popen(self.words(lab, serial, monitor, wires), stdout=said,
                                            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                            pass_fds=[end.fileno() for end in inherited],
                                            start_new_session=True)
        for end in inherited:
            end.close()

    def ready(self):
        """Waits until it takes commands."""
        self.ask("qmp_capabilities")
        if self.jobs["ready"].wait().status:
            raise Failed(f"guest {self.name} began badly{self.last_words()}")

    def words(self, lab, serial, monitor, wires):
        """QEMU's command line."""
        words = ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-nodefaults",
                 "-no-user-config", "-display", "none", "-no-reboot", "-m", str(lab.memory),
                 "-smp", str(lab.cpus), "-kernel", str(next(lab.kernel.glob("boot/vmlinuz-*"))),
                 "-initrd", str(lab.work / "initrd"), "-append",
                 "console=ttyS0 quiet panic=-1 mitigations=off net.ifnames=0 "
                 f"VM_NAME={self.name} VM_NODE={self.node}",
                 "-serial", f"file:{self.work}/{self.name}.console",
                 "-chardev", f"socket,id=agent,fd={serial.fileno()}", "-serial", "chardev:agent",
                 "-chardev", f"socket,id=monitor,fd={monitor.fileno()}",
                 "-mon", "chardev=monitor,mode=control", *lab.accelerator]
        for tag, (path, mode) in lab.folders().items():
            words += ["-fsdev", f"local,id={tag},path={str(path).replace(',', ',,')},"
                      f"security_model=none,multidevs=remap,readonly={mode}",
                      "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
        for index, wire in enumerate(wires):
            back = f"stream,id=n{index},server=off,addr.type=fd,addr.str={wire.fileno()}" \
                if wire else f"hubport,id=n{index},hubid={index}"
            words += ["-netdev", back, "-device", f"virtio-net-pci,netdev=n{index},"
                      f"romfile=,mac=02:00:00:00:{index:02x}:{lab.node(self.name):02x}"]
        return words

    def listen(self, deadline, what):
        """Takes what comes over the serial port within 0.2 s; Failed after the deadline."""
        if time.monotonic() > deadline:
            raise Failed(f"guest {self.name}: no end of {what} in time{self.last_words()}")
        if not select.select([self.serial], [], [], 0.2)[0]:
            return
        try:
            more = self.serial.recv(4096)
        except ConnectionResetError:
            more = b""
        if not more:
            raise Failed(f"guest {self.name} ended during {what}{self.last_words()}")
        *lines, self.buffer = (self.buffer + more).split(b"\n")
        for line in lines:
            number, _, status = line.decode(errors="replace").strip().partition(" ")
            if number in self.jobs:
                self.jobs.pop(number).status = int(status)

    def last_words(self):
        said = ""
        for kind in ("qemu", "console"):
            path = self.work / f"{self.name}.{kind}"
            said += path.read_text(errors="replace")[-1500:] if path.exists() else ""
        return f"; it said:\n{said}" if said.strip() else ""

    def start(self, script, seconds=60):
        """Begins a command; ends it there after so many seconds (status 124)."""
        number = f"{time.monotonic_ns()}"
        (self.work / f"{self.name}.{number}.sh").write_text(script + "\n")
        job = self.jobs[number] = Job(self, number, script, seconds)
        self.serial.sendall(f"{number} {seconds}\n".encode())
        return job

    def run(self, script, seconds=60):
        """Output of a command that must succeed."""
        return self.start(script, seconds).must()

    def cables(self, plugged, nics=None):
        """Pulls the cables of these NICs (all), or plugs them in."""
        for index in nics or range(self.nics):
            self.ask("set_link", name=f"n{index}", up=plugged)

    def ask(self, what, **arguments):
        """A command of QEMU's monitor."""
        text = {"execute": what} | ({"arguments": arguments} if arguments else {})
        reply = b""
        try:
            self.monitor.sendall(json.dumps(text).encode() + b"\n")
            while b'"return"' not in reply and b'"error"' not in reply:
                more = self.monitor.recv(4096)
                if not more:
                    raise ConnectionResetError("it ended")
                reply += more
        except OSError as why:
            raise Failed(f"guest {self.name}: monitor: {why}{self.last_words()}") from why
        if b'"error"' in reply:
            raise Failed(f"guest {self.name}: {what}: {reply.decode()}")

    def clear(self):
        """Ends what a failed case may have left."""
        self.start("pkill -KILL '^(ring|ib)'", 10).wait()

    def kill(self):
        """The machine vanishes."""
        self.process.kill()
        self.process.wait(END_SECONDS)
        self.serial.close()
        self.monitor.close()


class Lab:
    """One guest, or two with a wire between each pair of NICs. A context: guests and files are
    gone at its end."""

    def __init__(self, build, names=("a",), nics=1, cpus=2, memory=1024, kvm=False, share=None):
        vm_packages.check_tools()
        self.build, self.names, self.nics = Path(build).resolve(), names, nics
        self.bin, self.cpus, self.memory = self.build / "bin", cpus, memory
        self.share = Path(share).resolve() if share else None
        self.accelerator = ["-accel", "kvm", "-cpu", "host"] if kvm else \
            ["-accel", "tcg,thread=multi", "-cpu", "max"]
        unpacked = vm_packages.unpacked(self.build)
        self.kernel, self.layer = unpacked / "kernel", unpacked / "layer"
        self.work, self.guests = None, []

    def node(self, name):
        return 1 + "ab".index(name)

    def folders(self):
        """Shared with the guests: tag, path, read only."""
        folders = {"host": ("/", "on"), "layer": (self.layer, "on"), "work": (self.work, "off")}
        if self.share:
            folders["share"] = (self.share, "off")
        return folders

    def __enter__(self):
        self.work = Path(tempfile.mkdtemp(prefix="ring-vm."))
        try:
            scripts = {"init": HERE / "vm_init.sh", "agent.sh": HERE / "vm_agent.sh"}
            vm_kernel.initrd(self.kernel, self.work / "initrd", scripts, self.settings())
            self.keys()
            self.boot()
        except BaseException:
            self.__exit__()
            raise
        return self

    def settings(self):
        """The variables that vm_agent.sh needs."""
        own = {"WORK": self.work, "MODULES": self.kernel / "lib/modules", "BIN": self.bin,
               "CWD": os.getcwd(), "SHARE": self.share or ""}
        return "".join(f"export VM_{key}={shlex.quote(str(value))}\n"
                       for key, value in own.items())

    def keys(self):
        folder = self.work / "keys"
        folder.mkdir(mode=0o700)
        (folder / "secret").write_bytes(os.urandom(32))
        for name in ("key", "host"):
            vm_packages.command(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name,
                               "-f", str(folder / name)])

    def boot(self):
        pair = len(self.names) == 2
        wires = [socket.socketpair() if pair else (None, None) for _ in range(self.nics)]
        self.guests = []
        for end, name in enumerate(self.names):
            self.guests.append(Guest(name, self, [wire[end] for wire in wires]))
        for guest in self.guests:
            guest.ready()

    def __exit__(self, *_):
        for guest in self.guests:
            guest.process.kill()
        for guest in self.guests:
            guest.kill()
        shutil.rmtree(self.work, ignore_errors=True)
