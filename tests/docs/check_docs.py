#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the documents: docs/**/*.md and README.md.

    check_docs.py blocks --bin BUILD/bin --examples FOLDER
                                            every checked block prints what it shows
    check_docs.py options --bin BUILD/bin   every long option of a program has a row in a table of
                                            the program's page
    check_docs.py names --bin BUILD/bin     every variable, error, program, algorithm, transport and
                                            page, and whatever ringperf and ring_call take, is
                                            where readers look for it, every message that is
                                            quoted is one of the code, every call that a guide
                                            names is in a header, decisions and examples
                                            are numbered and counted rightly
    check_docs.py manual --bin PREFIX/bin   man shows each program's installed page: what it does,
                                            its options, its examples line by line, and letters
                                            that are not ASCII
    check_docs.py links                     every relative link leads to a file and a heading
    check_docs.py words                     no page has words that are not for readers, or rows
                                            that a blank line cuts off their table
    check_docs.py figures                   the README's figures are in docs/performance.md's tables

`--page FILE` checks one page (blocks, links, words); blocks.py says what a checked block is.
Exit status: 0 good, 1 something is wrong, 2 wrong use, 77 nothing could be checked.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import blocks
import messages
import pages

GOOD, WRONG, SKIPPED = 0, 1, 77
SHOWN_LINES = 60  # of a command's output, in a report
HEADERS = ("libring/include/ring/ring.h", "train/include/ring/train.h")
CODE = ("libring", "transport", "kernels", "train", "perf")  # where variables are read

# Not for readers: what is still to be done, and folders of the machine that a page was made on,
# which are all that no Linux system has.
SYSTEM = r"(?:bin|dev|etc|job|lib|opt|proc|run|shared|sys|usr|var|tmp/ring)\b"
UNWANTED = [r"\bTODO\b", r"\bFIXME\b", r"\bXXX\b", r"/tmp/(?!ring)",
            r"(?<![\w.'~})\]/:*-])/(?!" + SYSTEM + r")[a-z]+/"]


class Cannot(Exception):
    """A check that cannot be made here."""


class Failed(Exception):
    """What is checked does not even run."""


class Report:
    """Findings, told as they come."""

    def __init__(self):
        self.wrong = 0

    def add(self, text):
        self.wrong += 1
        print(text, flush=True)

    def code(self, what):
        print(f"{what}: {'good' if self.wrong == 0 else f'{self.wrong} wrong'}")
        return GOOD if self.wrong == 0 else WRONG


def read(source, path):
    return Path(source, path).read_text(encoding="utf-8")


def chosen_pages(options):
    if options.page is None:
        return pages.all_pages(options.source)
    page = Path(os.path.relpath(options.page, options.source))
    if not Path(options.source, page).is_file():
        raise Failed(f"{options.page} is no file")
    return [page]


# ---- What the project has --------------------------------------------------------------------


def listed(source, path, beginning):
    """The words of every `foreach(beginning word...)` in a CMake file."""
    found = re.findall(rf"foreach\({beginning}\s+([^)]*)\)", read(source, path))
    return " ".join(found).split()


def programs_of(source):
    return listed(source, "docs/CMakeLists.txt", "program")


def examples_of(source):
    """The numbers are those of the files alone: 2_hello.c makes hello."""
    names = listed(source, "docs/examples/CMakeLists.txt", "example")
    return [re.sub(r"^\d+_", "", name) for name in names]


def run_program(options, name, *arguments):
    path = Path(options.bin, name)
    if not path.is_file():
        raise Cannot(f"{path} is not built")
    # In an empty environment: what is shown is the default.
    done = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=60,
                          env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"})
    if done.returncode != 0:
        raise Failed(f"{name} {' '.join(arguments)} failed: {done.stderr.strip()}")
    return done.stdout


# ---- blocks ----------------------------------------------------------------------------------


def shown(line):
    return "(nothing more)" if line is None else repr(line)[1:-1]


def describe(page, difference):
    command = difference.command
    rows = [f"{page}:{command.line}: $ {command.text}",
            f"  the page has  {shown(difference.expected)}",
            f"  the output is {shown(difference.got)}", "  all of the output:"]
    rows += [f"    {line}" for line in difference.output[:SHOWN_LINES]]
    if len(difference.output) > SHOWN_LINES:
        rows.append(f"    ({len(difference.output) - SHOWN_LINES} more lines)")
    return "\n".join(rows)


def check_blocks_of(page, text, ours, env, options, report):
    """@return (blocks run, blocks left out)."""
    ran = left_out = 0
    for number in blocks.lost_marks(text):
        report.add(f"{page}:{number}: no fenced block follows this mark directly")
    try:
        found = blocks.read_blocks(text)
    except blocks.Malformed as problem:
        report.add(f"{page}: {problem}")
        return ran, left_out
    with tempfile.TemporaryDirectory() as root:
        place = None
        for block in found:
            reason = blocks.why_not(block, ours, env)
            if not block.continues:
                place = None if reason else blocks.Place(root)
            elif place is None:
                reason = "the block that it continues was left out"
            if reason:
                left_out += 1
                print(f"{page}:{block.line}: SKIPPED: {reason}", flush=True)
                continue
            ran += 1
            for difference in blocks.run_block(block, place, env, options.timeout):
                report.add(describe(page, difference))
    return ran, left_out


def check_blocks(options):
    report, ran, left_out = Report(), 0, 0
    ours = programs_of(options.source) + examples_of(options.source)
    env = blocks.environment(options.bin, options.examples, options.source, options.package)
    for page in chosen_pages(options):
        counts = check_blocks_of(page, read(options.source, page), ours, env, options, report)
        ran, left_out = ran + counts[0], left_out + counts[1]
    code = report.code(f"blocks: {ran} run, {left_out} left out")
    return SKIPPED if code == GOOD and ran == 0 and left_out > 0 else code


# ---- options ---------------------------------------------------------------------------------


def long_options(help_text):
    """The long options in the entries of a help text: lines that begin with an option, and those
    that go on deeper. Examples and prose speak of other programs, too."""
    found, depth = set(), None
    for line in help_text.split("\n"):
        indent = len(line) - len(line.lstrip())
        if re.match(r"\s+-", line):
            depth = indent
        elif not line.strip() or depth is None or indent <= depth:
            depth = None
        if depth is not None:
            found.update(re.findall(r"(?<![\w-])--[A-Za-z][\w-]*", line))
    return found


def mentions(text, option):
    return re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text) is not None


def table_rows(text, beginning):
    return "\n".join(line for line in text.split("\n") if line.startswith(f"| {beginning}"))


def help_texts(options, program):
    texts = [run_program(options, program, "--help")]
    if program == "ringperf":
        texts.append(run_program(options, program, "plan", "--help"))
        texts.append(run_program(options, program, "overlap", "--help"))
    return texts


def check_options(options):
    report = Report()
    for program in programs_of(options.source):
        page = Path("docs", "programs", f"{program}.md")
        if not Path(options.source, page).is_file():
            report.add(f"{page} is not there")
            continue
        rows = table_rows(read(options.source, page), "`-")
        wanted = set().union(*(long_options(found) for found in help_texts(options, program)))
        for option in sorted(wanted):
            if not mentions(rows, option):
                report.add(f"{page}: {option} of {program} --help has no row in a table")
    return report.code("options")


# ---- manual ----------------------------------------------------------------------------------


def rendered(page):
    """(text, warnings) of a manual page, on a terminal of wide lines."""
    options = ["--warnings=w", "--no-hyphenation", "--no-justification", "--local-file"]
    done = subprocess.run(["man", *options, page], capture_output=True, text=True, timeout=60,
                          env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8",
                               "MANWIDTH": "200", "MANPAGER": "cat"})
    return re.sub(".\b", "", done.stdout), done.stderr.strip()


def check_manual(options):
    pages_of = Path(options.bin).parent / "share" / "man" / "man1"
    if not pages_of.is_dir():
        raise Cannot(f"no pages in {pages_of}: apt-get install help2man, and build again")
    if shutil.which("man") is None:
        raise Cannot("man is not installed (apt-get install man-db)")
    report = Report()
    for program in programs_of(options.source):
        page = pages_of / f"{program}.1"
        if not page.is_file():
            report.add(f"{page} is not there")
            continue
        (text, warnings), help_text = rendered(page), run_program(options, program, "--help")
        lines = {line.strip() for line in text.splitlines()}
        if warnings:
            report.add(f"{page.name}: {warnings}")
        if not re.search(rf"^NAME\n +{program} - (?!manual page)[a-z]", text, re.MULTILINE):
            report.add(f"{page.name}: NAME does not say what {program} does")
        for letter in sorted(set(re.findall(r"[^\x00-\x7f]", help_text)) - set(text)):
            report.add(f"{page.name}: the letter {letter!r} of --help is not there")
        for option in sorted(long_options(help_text)):
            if not mentions(text, option):
                report.add(f"{page.name}: {option} is not mentioned")
        for example in help_text.partition("Examples:\n")[2].partition("\n\n")[0].splitlines():
            if example.strip() not in lines:
                report.add(f"{page.name}: the example {example.strip()!r} has no line of its own")
    return report.code("manual")


# ---- names -----------------------------------------------------------------------------------


def variables_of(options):
    return json.loads(run_program(options, "ringinfo", "env", "--json"))


def words_of(variables, name):
    """"shm, tcp, loop" in the help text "transports to use: shm, tcp, loop; ^ excludes"."""
    text = next(row["help"] for row in variables if row["name"] == name)
    return re.findall(r"\w+", text.partition(":")[2].partition(";")[0])


def variables_in_code(source):
    """Names like MASTER_ADDR in files that ask for variables, without those of the header."""
    found = set()
    for room in CODE:
        for file in Path(source, room).rglob("*.c"):
            text = file.read_text(encoding="utf-8")
            if "getenv(" in text:
                found.update(re.findall(r"\"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\"", text))
    header = read(source, "libring/include/ring/ring.h")
    return {name for name in found if name not in header}


def taken_by_ringperf(source):
    """@return pairs (kind, names) of the values that the program takes."""
    yield "collective", re.findall(r"\.name = \"(\w+)\"", read(source, "perf/collective.c"))
    names = read(source, "perf/names.c")
    yield "type", re.findall(r"\[RING_\w+\] = \{\"(\w+)\"", names)
    operations = re.findall(r"\[(RING_\w+)\] = \"(\w+)\"", read(source, "libring/base/status.c"))
    own_words = dict(re.findall(r"\"(\w+)\"\) == 0\) \{[^\n]*\n\s*\*op = (RING_\w+)", names))
    for word, operation in own_words.items():
        operations = [(name, word if name == operation else shown) for name, shown in operations]
    yield "operation", [shown for _, shown in operations]


def options_of_a_call(source):
    header = read(source, "libring/include/ring/ring.h")
    body = re.search(r"struct ring_call \{(.*?)\n\}", header, re.DOTALL)
    fields = re.sub(r"/\*.*?\*/", "", body.group(1), flags=re.DOTALL)
    return [field for field in re.findall(r"(\w+);", fields) if field != "size"]


def statuses_of(source):
    return re.findall(r"\bX\((RING_ERR_\w+),", read(source, "libring/include/ring/ring.h"))


class Names:
    """Checks that pages have names; a page that is not there is told once."""

    def __init__(self, source, report):
        self.source, self.report, self.texts = source, report, {}

    def text(self, page):
        if page not in self.texts:
            there = Path(self.source, page).is_file()
            self.texts[page] = read(self.source, page) if there else None
            if not there:
                self.report.add(f"{page} is not there")
        return self.texts[page]

    def want(self, page, names, what):
        for name in names:
            text = self.text(page)
            if text is not None and not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text):
                self.report.add(f"{page}: the {what} {name} is not mentioned")

    def want_rows(self, page, beginning, names):
        """Rows of tables that begin so have these names."""
        rows = table_rows(self.text(page) or "", beginning)
        for name in names:
            if f"`{name}`" not in rows:
                self.report.add(f"{page}: no row that begins with {beginning} has `{name}`")

    def want_headings(self, page, names, what):
        text = self.text(page)
        shown = " ".join(heading for _, heading in pages.headings(text)) if text else ""
        for name in names:
            if text is not None and not re.search(rf"\b{re.escape(name)}\b", shown):
                self.report.add(f"{page}: the {what} {name} has no heading")


def linked_pages(source, page):
    """Pages of docs/ that `page` links to, itself among them."""
    found = {page}
    for link in pages.links(read(source, page)):
        path, _ = pages.split_target(link.target)
        if path and pages.is_relative(link.target):
            found.add(Path(os.path.normpath(page.parent / path)))
    return found


def check_reach(source, report):
    """Every page is linked from the entrance, and is in the navigation of the site; a decision is
    linked from the list of decisions alone."""
    index, nav = Path("docs/index.md"), Path("docs/mkdocs.yml")
    decisions = Path("docs/decisions/README.md")
    for file in index, nav:
        if not Path(source, file).is_file():
            report.add(f"{file} is not there")
            return
    linked, navigation = linked_pages(source, index), read(source, nav)
    listed_decisions = linked_pages(source, decisions) if Path(source, decisions).is_file() else ()
    for page in pages.all_pages(source):
        if page.parts[0] != "docs":
            continue
        inner = page.relative_to("docs").as_posix()
        if re.fullmatch(r"decisions/\d{4}-.*", inner):
            if page not in listed_decisions:
                report.add(f"{decisions}: {inner} is not linked")
            continue
        if page not in linked:
            report.add(f"{index}: {inner} is not linked")
        if not re.search(rf"(?<![\w/.-]){re.escape(inner)}\s*(#.*)?$", navigation, re.MULTILINE):
            report.add(f"{nav}: {inner} is not in nav")


def check_calls(source, page, variables, report):
    """Names of libring that the page gives are public ones, or variables."""
    if not Path(source, page).is_file():
        return
    public = " ".join(read(source, header) for header in HEADERS if Path(source, header).is_file())
    known = set(re.findall(r"\w+", public)) | variables
    for name in sorted(set(re.findall(r"\b(?:ring|RING)_\w+", read(source, page))) - known):
        report.add(f"{page}: {name} is neither in a public header nor a variable")


def check_messages(source, page, report):
    """Messages that a page quotes are in the code."""
    if not Path(source, page).is_file():
        return
    known = messages.texts_in_code(Path(source, room) for room in CODE)
    for line, message in messages.quoted(read(source, page)):
        for part in messages.unknown_parts(message, known):
            report.add(f"{page}:{line}: no message has {part!r}")


def check_numbers(source, report):
    """Decisions are numbered without holes, and the changelog counts the examples rightly."""
    readme = "docs/decisions/README.md"
    numbers = {int(page.name[:4]) for page in Path(source, readme).parent.glob("[0-9]*.md")}
    absent = {int(number) for number in re.findall(r"Number (\d+) was not given",
                                                   read(source, readme))}
    for number in range(1, max(numbers) + 1):
        if (number in numbers) == (number in absent):
            report.add(f"{readme}: number {number} is "
                       f"{'given' if number in numbers else 'neither a page nor told of'}")
    there = str(len(examples_of(source)))
    for counted in re.findall(r"(\S+) numbered\s+examples", read(source, "CHANGELOG.md")):
        if counted != there:
            report.add(f"CHANGELOG.md: {counted} numbered examples, and {there} are there")


def check_names(options):
    report = Report()
    names, source = Names(options.source, report), options.source
    variables = variables_of(options)
    known = {row["name"] for row in variables} | variables_in_code(source)
    names.want(Path("docs/settings.md"), sorted(known), "variable")
    names.want_headings(Path("docs/troubleshooting.md"), statuses_of(source), "status")
    names.want(Path("docs/algorithms.md"), words_of(variables, "RING_ALGO"), "algorithm")
    names.want(Path("docs/transports.md"), words_of(variables, "RING_TRANSPORT"), "transport")
    for what, taken in taken_by_ringperf(source):
        names.want(Path("docs/programs/ringperf.md"), taken, what)
    names.want_rows(Path("docs/programs/ringperf.md"), "`--algo`", words_of(variables, "RING_ALGO"))
    names.want_rows(Path("docs/library.md"), "`", options_of_a_call(source))
    for program in programs_of(source):
        names.text(Path("docs", "programs", f"{program}.md"))
    check_messages(source, Path("docs/troubleshooting.md"), report)
    for page in ("library", "migrating", "training-library"):
        check_calls(source, Path("docs", f"{page}.md"), known, report)
    check_reach(source, report)
    check_numbers(source, report)
    return report.code("names")


# ---- links -----------------------------------------------------------------------------------


def anchor_problem(text, anchor):
    """GitHub and the site make anchors of headings in different ways: one that serves both."""
    on_github, on_site = pages.anchors(text)
    if anchor in on_github and anchor in on_site:
        return None
    if anchor in on_github | on_site:
        where = "the site" if anchor in on_github else "GitHub"
        return f"is another anchor on {where}; change the heading or link to the page"
    return "is no heading there"


def link_problem(source, page, target):
    """@return what is wrong with a link, or None. Those to other hosts are not looked at."""
    if not pages.is_relative(target):
        return "leads to a place of one machine" if target.startswith("/") else None
    path, anchor = pages.split_target(target)
    goal = Path(os.path.normpath(page.parent / path)) if path else page
    if goal.parts[:1] == ("..",):
        return "leads out of the source tree"
    if not Path(source, goal).exists():
        return "leads nowhere"
    if page.parts[0] == "docs" and Path(source, goal).is_dir():
        return "is a folder, which the site cannot show; link to a file"
    if anchor and goal.suffix == ".md":
        return anchor_problem(read(source, goal), anchor)
    return None


def check_links(options):
    report = Report()
    for page in chosen_pages(options):
        for link in pages.links(read(options.source, page)):
            problem = link_problem(options.source, page, link.target)
            if problem:
                report.add(f"{page}:{link.line}: ({link.target}) {problem}")
    return report.code("links")


# ---- figures ---------------------------------------------------------------------------------


def section_of(text, heading):
    """The lines below a heading up to the next of its level, None if it is not there. `heading`
    tells whether a line is it."""
    lines = text.split("\n")
    headings = [i for i, line in enumerate(lines) if line.startswith("## ")] + [len(lines)]
    for start, end in zip(headings, headings[1:]):
        if heading(lines[start]):
            return lines[start + 1:end]
    return None


def table_numbers(lines):
    return set(re.findall(r"\d+(?:\.\d+)?", " ".join(ln for ln in lines if ln.startswith("|"))))


FIGURE = r"\[([^\]]*\d[^\]]*)\]\(docs/performance\.md#([^)]+)\)"  # a link with a number


def check_figures(options):
    """A figure in the README is a link to the section of docs/performance.md whose table has it."""
    report, page = Report(), Path("docs/performance.md")
    figures = section_of(read(options.source, "README.md"), lambda line: line == "## Figures")
    text, links = "\n".join(figures or []), 0
    for label, anchor in re.findall(FIGURE, text):
        links += 1
        section = section_of(read(options.source, page),
                             lambda line, at=anchor: pages.slug_on_github(line[3:]) == at)
        for number in re.findall(r"\d+(?:\.\d+)?", label):
            if section is None or number not in table_numbers(section):
                report.add(f"README.md: no table below {page}#{anchor} has {number}")
    for number in re.findall(r"\d+\.\d+", re.sub(r"\[[^\]]*\]\([^)]*\)", "", text)):
        report.add(f"README.md: {number} is no link to a table of {page}")
    if links == 0:
        report.add(f"README.md: its figures are no links to {page}")
    return report.code("figures")


# ---- words -----------------------------------------------------------------------------------


def check_words(options):
    report, unwanted = Report(), re.compile("|".join(UNWANTED))
    for page in chosen_pages(options):
        text = read(options.source, page)
        for number, line in enumerate(text.split("\n"), 1):
            found = unwanted.search(line)
            if found:
                report.add(f"{page}:{number}: {found.group(0)!r} is not for readers: {line}")
        lines = ["", *pages.prose(text).split("\n"), ""]
        for number, (before, line, after) in enumerate(zip(lines, lines[1:], lines[2:]), 1):
            if line.startswith("|") and not before.startswith("|") and \
                    not re.match(r"\|[ :]*-", after):
                report.add(f"{page}:{number}: a row that belongs to no table: {line}")
    return report.code("words")


# ---- The command line ------------------------------------------------------------------------


def parse(arguments):
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=here.parent.parent,
                        help="the source tree (default: the one that this file lies in)")
    checks = parser.add_subparsers(dest="check", required=True)
    for name, check in (("blocks", check_blocks), ("options", check_options),
                        ("names", check_names), ("links", check_links), ("words", check_words),
                        ("figures", check_figures), ("manual", check_manual)):
        one = checks.add_parser(name)
        one.set_defaults(run=check)
        if name in ("blocks", "options", "names", "manual"):
            one.add_argument("--bin", type=Path, required=True, help="folder of the programs")
        if name in ("blocks", "links", "words"):
            one.add_argument("--page", type=Path, help="check this page only")
        if name == "blocks":
            one.add_argument("--examples", type=Path, help="folder of the built examples")
            one.add_argument("--package", type=Path, help="folder of ring_torch for this Python")
            one.add_argument("--timeout", type=float, default=30, help="seconds a command (30)")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    try:
        return options.run(options)
    except Cannot as problem:
        print(f"SKIPPED: {problem}")
        return SKIPPED
    except Failed as problem:
        print(problem)
        return WRONG


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
