# SPDX-License-Identifier: Apache-2.0
"""Running the checked blocks of a page and comparing what they print.

A block is checked if the line directly before its fence is `<!-- checked -->`, or
`<!-- checked: needs PROGRAM... -->`, which is left out where one of the programs is not there. Its
lines are commands, each behind `$ `, and what they print (both streams). A command goes on in the
next line after a backslash, or while bash says that it is not complete; such lines may begin
with `> `. In the output `…` stands for any text within a line, a line of `…` alone for any lines.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pages

MARK = re.compile(r"^<!--\s*checked\s*(?::\s*needs\s+([^>]+?))?\s*-->$")
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
    needs: list
    commands: list


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


def read_blocks(text):
    """@return the checked blocks of a page. Malformed: one is none."""
    found = []
    for fence in pages.fences(text):
        mark = MARK.match(fence.before)
        if mark and fence.language != "console":
            raise Malformed(f"line {fence.line - 1}: a checked block must be ```console")
        if mark:
            found.append(Block(fence.line, (mark.group(1) or "").split(), read_commands(fence)))
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


def environment(bin_folder, examples, source):
    """Nothing of the caller's but PATH: no RING_* variable changes what is shown."""
    ahead = [str(Path(folder).resolve()) for folder in (bin_folder, examples) if folder]
    return {"PATH": os.pathsep.join(ahead + [os.environ.get("PATH", os.defpath)]),
            "LC_ALL": "C.UTF-8", "EXAMPLES": str(Path(source, "docs", "examples").resolve()),
            **(installed_tree(bin_folder) if bin_folder else {})}


def run_command(command, status, folder, state, env, timeout):
    """@return (exit status or TIMEOUT, lines of both streams)."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            ["bash", "-c", SHELL, "bash", str(state), command.text, str(status)], cwd=folder,
            env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True)
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


def run_block(block, env, timeout):
    """@return the Differences; the commands behind one that timed out are not run."""
    found, status = [], 0
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as folder:
        env = {**env, "HOME": home}
        for command in block.commands:
            status, lines = run_command(command, status, folder, Path(home, ".state"), env, timeout)
            if status == TIMEOUT:
                found.append(Difference(command, None, f"still running after {timeout:g} s", lines))
                return found
            parted = first_difference(command.output, lines)
            if parted:
                found.append(Difference(command, *parted, lines))
    return found


def missing_programs(block, ours, env):
    """Programs that the block needs and PATH lacks: those it names as needed, and of `ours`,
    the project's own, those that its commands name."""
    words = {word for command in block.commands for word in re.findall(r"[\w-]+", command.text)}
    wanted = block.needs + sorted(words & set(ours))
    return [name for name in wanted if shutil.which(name, path=env["PATH"]) is None]
