# SPDX-License-Identifier: Apache-2.0
"""Running the checked blocks of a page and comparing what they print.

A block is checked if the line directly before its fence is `<!-- checked -->`. Its lines are
commands, each behind `$ `, and what they print (both streams). A command goes on in the
next line after a backslash, or while bash says that it is not complete; such lines may begin
with `> `. In the output `…` stands for any text within a line, a line of `…` alone for any lines.

Each block has a folder of its own, which is empty at first. A mark may have options, with a comma
between them, as in `<!-- checked: continues, needs cc -->`:

    needs NAME...   the block is left out where one of these programs, or Python packages, is not
                    installed
    continues       the block runs in the folder of the checked block before it, with the variables
                    that this one exported
    two-hosts       the commands run on node1, from where ssh reaches node2: see two_hosts.sh
    file NAME       the text of the block, in any language, is written to this file of the folder
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pages

MARK = re.compile(r"^<!--\s*checked\s*(?::\s*([^>]+?))?\s*-->$")
OPTION = re.compile(r"(?P<continues>continues)|(?P<two_hosts>two-hosts)|"
                    r"needs\s+(?P<needs>\S.*)|file\s+(?P<file>[\w.-]+)")
TWO_HOSTS = Path(__file__).resolve().parent / "two_hosts.sh"
SKIPPED = 77
WILD = "…"
TIMEOUT = "timeout"

# Each command runs in a bash of its own; folder, exported variables and status go on.
SHELL = """
_state=$1 _command=$2 _status=$3
[ -e "$_state" ] && . "$_state"
_leave() { _status=$?; { export -p; printf 'cd %q\\n' "$PWD"; } > "$_state"; exit "$_status"; }
trap _leave EXIT
set --
_resume() { return "$_status"; }
_resume
eval "$_command"
"""


@dataclass
class Command:
    line: int
    text: str
    output: list = field(default_factory=list)


@dataclass
class Block:
    line: int
    needs: list = field(default_factory=list)
    commands: list = field(default_factory=list)
    continues: bool = False
    two_hosts: bool = False
    file: str = ""  # a block with this has the text of the file, and no commands
    text: str = ""


@dataclass
class Difference:
    """Where the output of a command departs from the page; None: nothing there."""

    command: Command
    expected: str
    got: str
    output: list


class Malformed(Exception):
    """A block that cannot be run."""


# ---- Blocks of a page ----------------------------------------------------------------------


def is_complete(command):
    if command.endswith("\\"):
        return False
    asked = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True)
    return not re.search(r"unexpected end of file|unexpected EOF|here-document", asked.stderr)


def read_commands(fence):
    commands = []
    for number, line in enumerate(fence.lines, fence.line):
        if commands and not commands[-1].output and not is_complete(commands[-1].text):
            commands[-1].text += "\n" + line.removeprefix("> ")
        elif line.startswith("$ "):
            commands.append(Command(number, line[2:]))
        elif commands:
            commands[-1].output.append(line.rstrip())
        elif line.strip():
            raise Malformed(f"line {number}: output comes before the first command")
    if not commands:
        raise Malformed(f"line {fence.line}: a checked block has no line that begins with '$ '")
    for command in commands:
        strip_end(command.output)
    return commands


def read_options(block, options):
    """Sets the fields of the block that the options of its mark name."""
    for option in options.split(",") if options else ():
        found = OPTION.fullmatch(option.strip())
        if not found:
            raise Malformed(f"line {block.line - 2}: a mark has no option '{option.strip()}'")
        block.continues |= found["continues"] is not None
        block.two_hosts |= found["two_hosts"] is not None
        block.needs += (found["needs"] or "").split()
        block.file = found["file"] or block.file


def read_blocks(text):
    """@return the checked blocks of a page; malformed ones are left out."""
    found = []
    for fence in pages.fences(text):
        mark = MARK.match(fence.before)
        if not mark:
            continue
        block = Block(fence.line)
        read_options(block, mark.group(1))
        if block.file:
            block.text = "\n".join(fence.lines) + "\n"
        elif fence.language != "console":
            raise Malformed(f"line {fence.line - 1}: a checked block must be ```console")
        else:
            block.commands = read_commands(fence)
        if block.continues and not found:
            raise Malformed(f"line {fence.line - 2}: no checked block is there to continue")
        found.append(block)
    return found


def lost_marks(text):
    """Lines with a mark that no fence follows: such a block would never run."""
    before = {fence.line - 2 for fence in pages.fences(text) if MARK.match(fence.before)}
    lines = pages.prose(text).split("\n")
    return [number for number, line in enumerate(lines, 1)
            if MARK.match(line.strip()) and number not in before]


# ---- Comparing -----------------------------------------------------------------------------


def strip_end(lines):
    while lines and not lines[-1].strip():
        lines.pop()


def line_matches(expected, got):
    parts = (re.escape(part) for part in expected.split(WILD))
    return re.fullmatch(".*".join(parts), got) is not None


def first_difference(expected, got):
    """@return None if all of `got` is as expected; else (expected line, line got) where they
    part, None for the end of either."""
    ways, reached = {0}, 0  # how many lines of `got` the expected ones so far may have taken
    for line in expected:
        if line.strip() == WILD:
            ways = set(range(min(ways), len(got) + 1))
            continue
        reached = max(ways)
        ways = {at + 1 for at in ways if at < len(got) and line_matches(line, got[at])}
        if not ways:
            return line, got[reached] if reached < len(got) else None
    return None if len(got) in ways else (None, got[max(ways)])


# ---- Running -------------------------------------------------------------------------------


def installed_tree(bin_folder):
    """Variables by which compilers and programs find the libring that lies beside the programs."""
    prefix = Path(bin_folder).resolve().parent
    for description in sorted(prefix.glob("lib/**/pkgconfig/ring.pc")):
        library = description.parent.parent
        return {"PKG_CONFIG_PATH": str(description.parent), "LD_LIBRARY_PATH": str(library),
                "CMAKE_PREFIX_PATH": str(prefix)}
    return {}


def environment(bin_folder, examples, source, package=None):
    """Nothing of the caller's but PATH: no RING_* variable changes what is shown. `package` is the
    folder of ring_torch, which was built for this Python: its programs are those of torch."""
    ahead = [str(Path(folder).resolve()) for folder in (bin_folder, examples) if folder]
    after = [os.environ.get("PATH", os.defpath)]
    if package:
        after.append(str(Path(sys.executable).parent))
    return {"PATH": os.pathsep.join(ahead + after),
            "LC_ALL": "C.UTF-8", "EXAMPLES": str(Path(source, "docs", "examples").resolve()),
            **({"PYTHONPATH": str(Path(package).resolve())} if package else {}),
            **(installed_tree(bin_folder) if bin_folder else {})}


class Place:
    """The folders that a block runs in, and the exit status of the latest command there."""

    def __init__(self, root):
        self.folder, self.home = tempfile.mkdtemp(dir=root), tempfile.mkdtemp(dir=root)
        self.status = 0


def run_command(command, place, before, env, timeout):
    """Runs the command in a shell that the words `before` start.
    @return (exit status or TIMEOUT, lines of both streams)."""
    state = Path(place.home, ".state")
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [*before, "bash", "-c", SHELL, "bash", str(state), command.text, str(place.status)],
            cwd=place.folder, env={**env, "HOME": place.home}, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            status = TIMEOUT
        kill_group(process)
        output.seek(0)
        lines = output.read().decode("utf-8", "replace").split("\n")
    lines = [line.rstrip() for line in lines]
    strip_end(lines)
    return status, lines


def kill_group(process):
    """Whatever the command left running goes with it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def run_block(block, place, env, timeout):
    """@return the Differences; the commands behind one that timed out are not run."""
    found = []
    if block.file:
        Path(place.folder, block.file).write_text(block.text, encoding="utf-8")
    for command in block.commands:
        before = ["bash", str(TWO_HOSTS)] if block.two_hosts else []
        place.status, lines = run_command(command, place, before, env, timeout)
        if place.status == TIMEOUT:
            found.append(Difference(command, None, f"still running after {timeout:g} s", lines))
            return found
        parted = first_difference(command.output, lines)
        if parted:
            found.append(Difference(command, *parted, lines))
    return found


def why_not(block, ours, env):
    """@return why the block cannot run here, None if it can."""
    missing = missing_programs(block, ours, env)
    if missing:
        return f"{', '.join(missing)} is not there"
    if block.two_hosts:
        trial = subprocess.run(["bash", str(TWO_HOSTS), "true"], env=env, capture_output=True,
                               text=True)
        if trial.returncode == SKIPPED:
            return trial.stdout.strip()
    return None


def missing_programs(block, ours, env):
    """Programs that the block needs and PATH lacks: those it names as needed, and of `ours`,
    the project's own, those that its commands name."""
    words = {word for command in block.commands for word in re.findall(r"[\w-]+", command.text)}
    wanted = block.needs + sorted(words & set(ours))
    packages = env.get("PYTHONPATH", os.devnull)
    return [name for name in wanted if shutil.which(name, path=env["PATH"]) is None
            and not Path(packages, name).is_dir()]
