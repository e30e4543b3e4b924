#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each check passes on a small good source tree and fails once something in it is wrong."""

import contextlib
import io
import json
import shutil
import tempfile
import unittest
from pathlib import Path

import blocks
import check_docs
import generated_page
import make_site
import pages
import settings_page

VARIABLES = [
    {"name": "RING_ALGO", "unit": "name", "default": "", "help": "algorithm: ring, tree; else any"},
    {"name": "RING_TRANSPORT", "unit": "list", "default": "", "help": "to use: shm; ^ excludes"},
    {"name": "RING_TIMEOUT", "unit": "s", "default": "600", "help": "a call", "nccl": "NCCL_T"},
]
RINGINFO = """#!/bin/sh
case "$*" in
--help)
    printf 'Usage: ringinfo\\n\\n  -j, --json   For programs\\n\\n'
    printf 'Examples:\\n  x --foreign\\n  x …\\n' ;;
"env --json") cat <<'END'
%s
END
;;
*) echo "1 of 2" ;;
esac
"""
MANUAL = """.TH RINGINFO 1
.SH NAME
ringinfo \\- show what is here
.SH OPTIONS
\\-j, \\-\\-json  For programs
.SH EXAMPLES
.nf
x \\-\\-foreign
x …
.fi
"""
NAV = "nav:\n  - index.md\n  - S: settings.md\n  - T: troubleshooting.md\n  - A: algorithms.md\n" \
      "  - R: transports.md\n  - V: performance.md\n" \
      "  - P: programs/ringinfo.md\n  - M: programs/ringperf.md\n  - L: library.md\n" \
      "  - D: decisions/README.md\n"
TREE = {
    "README.md": "# Readme\n\n[Settings](docs/settings.md), [docs](docs)\n\n## Figures\n\n"
                 "[1.5 to 3 times](docs/performance.md#all_reduce)\n\n## Next\n\n0.7\n",
    "docs/performance.md": "# Speed\n\n## all_reduce\n\n| B | µs |\n|---|---|\n"
                           "| 8 | 1.5 / **3** |\n\n"
                           "## Other\n\n| 2 |\n|---|\n",
    "docs/CMakeLists.txt": "foreach(program ringinfo)\nendforeach()\n",
    "docs/examples/CMakeLists.txt": "foreach(example 1_first)\nendforeach()\n"
                                    "foreach(example 2_next)\nendforeach()\n",
    "docs/decisions/README.md": "# Decisions\n\nNumber 2 was not given.\n\n"
                                "1. [One](0001-one.md)\n3. [Three](0003-three.md)\n",
    "docs/decisions/0001-one.md": "# One\n",
    "docs/decisions/0003-three.md": "# Three\n",
    "CHANGELOG.md": "# Changes\n\n- 2 numbered examples\n",
    "docs/mkdocs.yml": "site_name: x\ndocs_dir: docs\nuse_directory_urls: false\n"
                       "theme:\n  name: mkdocs\n  highlightjs: false\n" + NAV,
    "docs/index.md": "# Index\n\n[s](settings.md) [t](troubleshooting.md#ring_err_peer)\n"
                     "[a](algorithms.md) [r](transports.md) [p](programs/ringinfo.md)\n"
                     "[v](performance.md) [m](programs/ringperf.md) [l](library.md)\n"
                     "[d](decisions/README.md)\n",
    "docs/settings.md": "# Settings\n\nRING_ALGO RING_TRANSPORT RING_TIMEOUT MASTER_ADDR\n",
    "docs/troubleshooting.md": "# Trouble\n\n## `RING_ERR_PEER`\n\n## RING_ERR_AUTH\n",
    "docs/algorithms.md": "# Algorithms\n\nring tree\n",
    "docs/transports.md": "# Transports\n\nshm\n",
    "docs/programs/ringinfo.md": "# ringinfo\n\n| option |\n|---|\n| `--json` |\n\n"
                                 "<!-- checked -->\n```console\n"
                                 "$ ringinfo\n1 of …\n```\n",
    "docs/programs/ringperf.md": "# ringperf\n\nscatter, `int8`, `mulsum`\n\n"
                                 "| option | value |\n|---|---|\n| `--algo` | `ring`, `tree` |\n",
    "docs/library.md": "# Library\n\n| field | meaning |\n|---|---|\n| `work` | a handle |\n"
                       "| `on_done`, `tag` | |\n",
    "perf/collective.c": "{.name = \"scatter\"},\n",
    "perf/names.c": "[RING_INT8] = {\"int8\", \"char\"},\n"
                    "    if (strcmp(name, \"mulsum\") == 0) { /* */\n"
                    "        *op = RING_PREMUL_SUM;\n",
    "libring/base/status.c": "[RING_PREMUL_SUM] = \"premul_sum\",\n",
    "libring/include/ring/ring.h": "struct ring_call {\n    size_t size; /**< its; size */\n"
                                   "    ring_work **work;\n    ring_done on_done;\n"
                                   "    int tag; /**< a\n number; */\n} ring_call;\n"
                                   "X(RING_OK, 0, \"\") X(RING_ERR_PEER, 1, \"\") "
                                   "X(RING_ERR_AUTH, 2, \"\")\n",
    "libring/launch.c": "getenv(\"MASTER_ADDR\");\n",
}
CONTINUED = """# ringinfo

<!-- checked: file x.c -->
```c
int x;
```

<!-- checked: continues -->
```console
$ cat x.c; export A=1; false
int x;
```

<!-- checked: continues, needs sh -->
```console
$ echo $? $A; ls
1 1
x.c
```

<!-- checked -->
```console
$ ls; echo $A
```
"""


class Tree(unittest.TestCase):
    """A good source tree, to be spoiled."""

    def setUp(self):
        self.root = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        for name, text in TREE.items():
            self.write(name, text)
        self.write("bin/ringinfo", RINGINFO % json.dumps(VARIABLES))
        (self.root / "bin/ringinfo").chmod(0o755)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def replace(self, name, old, new):
        text = (self.root / name).read_text(encoding="utf-8")
        self.assertIn(old, text)
        self.write(name, text.replace(old, new))

    def run_check(self, check, *arguments):
        """@return (exit status, output)."""
        output, programs = io.StringIO(), []
        if check in ("blocks", "options", "names", "manual"):
            programs = ["--bin", str(self.root / "bin")]
        with contextlib.redirect_stdout(output):
            code = check_docs.main(["--source", str(self.root), check, *programs, *arguments])
        return code, output.getvalue()

    def assert_good(self, check, *arguments):
        code, output = self.run_check(check, *arguments)
        self.assertEqual(code, 0, output)

    def assert_wrong(self, check, expected, *arguments):
        code, output = self.run_check(check, *arguments)
        self.assertEqual(code, 1, output)
        self.assertIn(expected, output)


class Checks(Tree):
    def test_the_tree_is_good(self):
        for check in "blocks", "options", "names", "links", "words", "figures":
            self.assert_good(check)

    def test_options(self):
        for other in "| `--jsonl` |", "`--json`":
            self.setUp()
            self.replace("docs/programs/ringinfo.md", "| `--json` |", other)
            self.assert_wrong("options", "--json of ringinfo")

    @unittest.skipIf(shutil.which("man") is None, "man is not here")
    def test_manual(self):
        page = "share/man/man1/ringinfo.1"
        self.assertEqual(self.run_check("manual")[0], 77)
        self.write(page, MANUAL)
        self.assert_good("manual")
        for old, new, expected in (
                ("show what is here", "manual page for ringinfo", "NAME does not say what"),
                ("\\-json", "\\-jsonl", "--json is not mentioned"),
                ("x …", "x ???", "the letter '…' of --help is not there"),
                (".nf", ".IP", "'x --foreign' has no line of its own"),
                (".SH OPTIONS", ".XY OPTIONS", "ringinfo.1: ")):
            self.write(page, MANUAL.replace(old, new))
            self.assert_wrong("manual", expected)

    def test_a_program_without_a_page(self):
        (self.root / "docs/programs/ringinfo.md").unlink()
        self.assert_wrong("options", "docs/programs/ringinfo.md is not there")
        self.assert_wrong("names", "docs/programs/ringinfo.md is not there")

    def test_names(self):
        for page, name, expected in (
                ("settings", "RING_TIMEOUT", "the variable RING_TIMEOUT is not mentioned"),
                ("settings", "MASTER_ADDR", "the variable MASTER_ADDR is not mentioned"),
                ("algorithms", "tree", "the algorithm tree is not mentioned"),
                ("transports", "shm", "the transport shm is not mentioned"),
                ("programs/ringperf", "scatter", "the collective scatter is not mentioned"),
                ("programs/ringperf", "int8", "the type int8 is not mentioned"),
                ("programs/ringperf", "mulsum", "the operation mulsum is not mentioned"),
                ("programs/ringperf", ", `tree`", "begins with `--algo` has `tree`"),
                ("library", "`tag`", "begins with ` has `tag`"),
                ("troubleshooting", "## RING_ERR_AUTH", "the status RING_ERR_AUTH has no heading")):
            self.setUp()
            self.replace(f"docs/{page}.md", name, "nothing")
            self.assert_wrong("names", expected)

    def test_numbers(self):
        for page, old, new, expected in (
                ("docs/decisions/README.md", "Number 2", "Number 7",
                 "number 2 is neither a page nor told of"),
                ("docs/decisions/README.md", "given.", "given. Number 3 was not given.",
                 "number 3 is given"),
                ("CHANGELOG.md", "2 numbered", "twelve numbered",
                 "twelve numbered examples, and 2 are there")):
            self.setUp()
            self.replace(page, old, new)
            self.assert_wrong("names", expected)

    def test_messages(self):
        self.write("libring/launch.c", 'fail(1, "frame %" PRIu64 " of rank %d "\n'
                                       '     "came: %s", n); fail("its sum is \\"x\\"");'
                                       'getenv("MASTER_ADDR");\n')
        table = "\n| message | cause |\n|---|---|\n| `{}` | `other` |\n"
        before = TREE["docs/troubleshooting.md"]
        for good in ("frame … of rank … came: …", "frame … of rank … came: its sum is \"x\""):
            self.write("docs/troubleshooting.md", before + table.format(good))
            self.assert_good("names")
        for bad in ("frames … of rank …", "frame … of rank … came: its sum is wrong"):
            self.write("docs/troubleshooting.md", before + table.format(bad))
            self.assert_wrong("names", "no message has")

    def test_calls(self):
        self.write("docs/library.md",
                   TREE["docs/library.md"] + "\n`RING_ERR_PEER` `RING_ALGO`\n")
        self.assert_good("names")
        self.replace("docs/library.md", "ERR_PEER", "ERR_PEERS")
        self.assert_wrong("names", "RING_ERR_PEERS is neither in a public header nor a variable")

    def test_a_page_that_nobody_finds(self):
        self.write("docs/programs/other.md", "# Other\n")
        self.assert_wrong("names", "docs/index.md: programs/other.md is not linked")
        self.assert_wrong("names", "docs/mkdocs.yml: programs/other.md is not in nav")

    def test_a_program_that_is_not_built(self):
        (self.root / "bin/ringinfo").unlink()
        self.assertEqual(self.run_check("names")[0], 77)

    def test_links(self):
        for link, expected in (("[x](nowhere.md)", "leads nowhere"),
                               ("[x](settings.md#nothing)", "is no heading there"),
                               ("[x](#nothing)", "is no heading there"),
                               ("[x]: nowhere.md", "leads nowhere"),
                               ("<a href=\"nowhere.md\">x</a>", "leads nowhere"),
                               ("[`x`](programs)", "is a folder"),
                               ("[x](/etc/passwd)", "leads to a place of one machine"),
                               ("[x](../../y.md)", "leads out of the source tree")):
            self.write("docs/index.md", f"# Index\n\n{link}\n")
            self.assert_wrong("links", expected)

    def test_links_that_are_none_or_good(self):
        self.write("docs/index.md", "# The index\n\n`[x](nowhere.md)` [x](#the-index) "
                                    "[y](https://example.org/nowhere.md)\n\n"
                                    "```c\n[x](nowhere.md)\n```\n")
        self.assert_good("links")

    def test_an_anchor_that_only_one_renderer_has(self):
        self.write("docs/index.md", "# This & that\n\n[x](#this--that)\n")
        self.assert_wrong("links", "is another anchor on the site")

    def test_words(self):
        for word in "TODO", "FIXME", "see /folder/of/mine", "in /tmp/scratch":
            self.write("docs/settings.md", f"# Settings\n\n{word}\n")
            self.assert_wrong("words", "docs/settings.md:3")
        for table in "| a |", "| a |\n|---|\n| b |\n\n| c |":
            self.write("docs/settings.md", f"# Settings\n\n{table}\n")
            self.assert_wrong("words", "a row that belongs to no table")
        self.write("docs/settings.md",
                   "# Settings\n\n| a |\n| --- |\n| b |\n\n```text\n| c |\n```\n")
        self.assert_good("words")

    def test_figures(self):
        self.replace("README.md", "1.5 to", "2 to")
        self.assert_wrong("figures", "no table below docs/performance.md#all_reduce has 2")
        self.replace("README.md", "[2 to 3 times](docs/performance.md#all_reduce)", "1.5 times")
        self.assert_wrong("figures", "1.5 is no link to a table")
        self.replace("README.md", "## Figures", "## Other")
        self.assert_wrong("figures", "its figures are no links")


class Blocks(Tree):
    def page(self, *lines, mark="<!-- checked -->", language="console"):
        fence = "\n".join([mark, f"```{language}", *lines, "```"])
        self.write("docs/programs/ringinfo.md", f"# ringinfo\n\n{fence}\n")

    def test_a_wrong_output(self):
        self.page("$ ringinfo", "2 of 2")
        self.assert_wrong("blocks", "the page has  2 of 2\n  the output is 1 of 2")

    def test_output_that_is_missing_or_too_much(self):
        self.page("$ ringinfo")
        self.assert_wrong("blocks", "the page has  (nothing more)")
        self.page("$ ringinfo", "1 of 2", "more")
        self.assert_wrong("blocks", "the output is (nothing more)")

    def test_wildcards(self):
        self.page("$ printf 'a 1 b\\nc\\nd\\n'", "a … b", "…", "d")
        self.assert_good("blocks")
        self.page("$ printf 'a\\n'", "…", "a", "…")
        self.assert_good("blocks")
        self.page("$ printf 'a\\nb\\n'", "…", "a")
        self.assert_wrong("blocks", "the output is b")

    def test_commands_follow_each_other(self):
        self.page("$ mkdir x && cd x && export A=1", "$ echo $A > f; (exit 3)", "", "$ echo $?",
                  "3", "$ cat f; basename $PWD", "1", "x")
        self.assert_good("blocks")

    def test_commands_of_several_lines(self):
        self.page("$ echo a \\", ">   b", "a b", "$ cat << END", "> text", "> END", "text",
                  "$ for i in 1 2", "do echo $i", "done", "1", "2")
        self.assert_good("blocks")

    def test_both_streams_and_no_foreign_variables(self):
        self.page("$ echo out; echo err >&2; echo \"$RING_ALGO\"; ls; basename $EXAMPLES", "out",
                  "err", "", "examples")
        self.assert_good("blocks")

    def test_a_command_that_hangs(self):
        self.page("$ echo begins; sleep 60", "begins")
        self.assert_wrong("blocks", "still running after 0.5 s", "--timeout", "0.5")

    def test_one_page_alone(self):
        self.page("$ ringinfo", "2 of 2")
        self.assert_good("blocks", "--page", str(self.root / "README.md"))
        page = self.root / "docs/programs/ringinfo.md"
        self.assert_wrong("blocks", "2 of 2", "--page", str(page))

    def test_what_cannot_run_is_left_out_in_plain_sight(self):
        self.page("$ ./first")
        code, output = self.run_check("blocks")
        self.assertEqual(code, 77)
        self.assertIn("SKIPPED: first is not there", output)
        self.page("$ true", mark="<!-- checked: needs no-such-program -->")
        self.assertIn("SKIPPED: no-such-program is not there", self.run_check("blocks")[1])

    def test_a_block_that_continues_another(self):
        self.write("docs/programs/ringinfo.md", CONTINUED)
        code, output = self.run_check("blocks")
        self.assertEqual((code, output.splitlines()[-1]), (0, "blocks: 4 run, 0 left out: good"))
        self.write("docs/programs/ringinfo.md", CONTINUED.replace("1 1\n", "0 1\n"))
        self.assert_wrong("blocks", "the output is 1 1")
        self.write("docs/programs/ringinfo.md", CONTINUED.replace("x.c -->", "x.c, needs none -->"))
        output = self.run_check("blocks")[1]
        self.assertIn("SKIPPED: the block that it continues was left out", output)
        self.page("$ true", mark="<!-- checked: continues -->")
        self.assert_wrong("blocks", "no checked block is there to continue")

    def test_a_python_package(self):
        self.page("$ echo $PYTHONPATH | grep -o python$", "python",
                  mark="<!-- checked: needs ring_torch -->")
        self.assertIn("ring_torch is not there", self.run_check("blocks")[1])
        (self.root / "python/ring_torch").mkdir(parents=True)
        self.assert_good("blocks", "--package", str(self.root / "python"))

    def test_two_hosts(self):
        self.page("$ hostname; ssh node2 'hostname; echo $A'", "node1", "node2", "",
                  "$ ssh node3 true; echo $?", "ssh: … node3: Name or service not known", "255",
                  "$ ssh node2 exit 3; echo $?", "3", mark="<!-- checked: two-hosts -->")
        code, output = self.run_check("blocks")
        if code == 77:
            self.skipTest(output.splitlines()[0])
        self.assertEqual(code, 0, output)

    def test_blocks_that_are_none(self):
        for lines, mark, language, expected in (
                (["output", "$ true"], "<!-- checked -->", "console", "before the first command"),
                ([], "<!-- checked -->", "console", "has no line that begins with '$ '"),
                (["$ true"], "<!-- checked -->", "text", "must be ```console"),
                (["$ true"], "<!-- checked: wants x -->", "console", "has no option 'wants x'"),
                (["$ true"], "<!-- checked -->\n", "console", "no fenced block follows this mark")):
            self.page(*lines, mark=mark, language=language)
            self.assert_wrong("blocks", expected)

    def test_without_a_mark_nothing_runs(self):
        self.page("$ false", "nonsense", mark="")
        self.assert_good("blocks")


class Parts(unittest.TestCase):
    def test_long_options(self):
        text = "Usage: x [--usage-line]\n\n      --np=N    Ranks (also --num)\n" \
               "                going on with --deep\nprose --not-this\n\n  x --nor-this\n"
        self.assertEqual(check_docs.long_options(text), {"--np", "--num", "--deep"})

    def test_first_difference(self):
        self.assertIsNone(blocks.first_difference(["…", "b", "…"], ["b", "b"]))
        self.assertEqual(blocks.first_difference(["a", "…", "c"], ["a", "b"]), ("c", None))
        self.assertEqual(blocks.first_difference([], ["a"]), (None, "a"))

    def test_fences(self):
        found = pages.fences("````text\n```\nx\n````\n\n  ```c\n  y\n  ```\n")
        self.assertEqual([(one.language, one.lines) for one in found],
                         [("text", ["```", "x"]), ("c", ["y"])])

    def test_anchors(self):
        on_github, on_site = pages.anchors("# A `b` c\n\n## X\n\n## X\n")
        self.assertEqual(on_github, {"a-b-c", "x", "x-1"})
        self.assertEqual(on_site, {"a-b-c", "x", "x_1"})


class Settings(unittest.TestCase):
    rows = {row["name"]: row for row in VARIABLES}

    def test_the_page(self):
        template = "# S\n@table RING_TIMEOUT\n\n@table RING_ALGO RING_TRANSPORT\n"
        text = settings_page.page(template, self.rows)
        self.assertIn("| `RING_TIMEOUT` | s | `600` | `NCCL_T` | a call |", text)
        self.assertIn("| `RING_ALGO` | name | – | – | algorithm: ring, tree; else any |", text)

    def test_variables_that_are_missing_unknown_or_there_twice(self):
        for template, expected in (
                ("@table RING_ALGO RING_TIMEOUT", "no @table has RING_TRANSPORT"),
                ("@table RING_NONE", "has no RING_NONE"),
                ("@table RING_ALGO RING_ALGO RING_TIMEOUT RING_TRANSPORT", "in two")):
            with self.assertRaisesRegex(settings_page.Failed, expected):
                settings_page.page(template, self.rows)

    def test_a_page_that_differs(self):
        with tempfile.TemporaryDirectory() as folder:
            page, out = Path(folder, "settings.md"), io.StringIO()
            words = "settings", "the table", "settings_page.py"
            page.write_text("# Settings\n\nold\n", encoding="utf-8")
            with contextlib.redirect_stdout(out):
                self.assertEqual(generated_page.check(page, "# Settings\n\nnew\n", *words), 1)
                self.assertEqual(generated_page.check(page, "# Settings\n\nold\n", *words), 0)
            self.assertIn("-old\n+new", out.getvalue())


class Site(Tree):
    def test_the_copy(self):
        self.write("libring/x.h", "text\n")
        text = make_site.site_page(self.root, self.root / "copy", Path("programs/p.md"),
                                   "Words\n- a\n- b\n\n[x](../../libring/x.h) [y](../index.md#i)\n")
        self.assertEqual(text, "Words\n\n- a\n- b\n\n"
                               "[x](../files/libring/x.h) [y](../index.md#i)\n")
        self.assertTrue((self.root / "copy/files/libring/x.h").is_file())

    def test_what_the_site_cannot_show(self):
        for text, expected in (("- x\n\n  ```c\n  ```\n", "shows no fenced block"),
                               ("[x](../../none.h)", "leads to no file")):
            with self.assertRaisesRegex(make_site.Failed, expected):
                make_site.site_page(self.root, self.root / "copy", Path("programs/p.md"), text)

    def test_what_pages_fetch(self):
        for text, expected in (
                ("<script src=\"https://cdn.example/x.js\"></script>", "fetches https"),
                ("<style>@import '//fonts.example/x';</style>", "fetches //fonts"),
                ("<img src=\"x.png\">", "x.png is not there"),
                ("<a href=\"none.html#x\">x</a>", "none.html#x is not there")):
            self.write("html/page.html", text)
            with self.assertRaisesRegex(make_site.Failed, expected):
                make_site.check_site(self.root / "html")
        self.write("html/page.html", "<a href=\"https://example.org\">x</a> "
                                     "<a href=\"page.html#y\">y</a>")
        make_site.check_site(self.root / "html")

    @unittest.skipIf(shutil.which("mkdocs") is None, "mkdocs is not installed")
    def test_the_site(self):
        html = make_site.make(self.root, self.root / "site")
        self.assertTrue((html / "programs/ringinfo.html").is_file())
        self.replace("docs/index.md", "settings.md", "nowhere.md")
        with self.assertRaisesRegex(make_site.Failed, "nowhere.md"):
            make_site.make(self.root, self.root / "site")


if __name__ == "__main__":
    unittest.main()
