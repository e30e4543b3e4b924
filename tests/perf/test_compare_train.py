#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""perf/compare/compare_train.py compares like with like: the same steps, the same binding. Programs
that note how they were called stand in for ringrun with ringtrain and for PyTorch.

    test_compare_train.py SOURCE BIN
"""
import gzip
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import unittest

SOURCE, BIN = sys.argv[1:3]
EPOCH = 938  # steps of the stand-in's epoch on one rank
SAVED = 4690  # steps of its checkpoint

NOTE = f"""#!{sys.executable}
import json, os, sys
with open(os.environ["NOTES"], "a") as file:
    file.write(json.dumps([sys.argv, dict(os.environ)]) + "\\n")
"""
RINGRUN = NOTE + f"""
def value(name, default):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default
if "products" in sys.argv:
    for rank in range(int(value("-n", "1"))):
        print(f"# matrix products, 64 samples : {{100.0 * (rank + 1)}} us, 1 GFLOP/s")
    raise SystemExit
with open(value("--deepspeed_config", "")) as config:
    with open(os.environ["NOTES"] + ".configs", "a") as file:
        file.write(config.read())
if open(value("--data", "") + "/images").read() != "unpacked":
    raise SystemExit(1)
if "--save" in sys.argv:
    os.makedirs(value("--save", ""))
    with open(value("--save", "") + "/latest", "w") as latest:
        latest.write("step-{SAVED:08}")
    raise SystemExit
epoch = {EPOCH} // int(value("-n", "1"))
steps = min(int(value("--max-steps", "0")), int(value("--epochs", "1")) * epoch)
steps -= {SAVED} * ("--resume" in sys.argv)
with open(value("--metrics", ""), "w") as file:
    file.write('{{"run": {{}}}}\\n')
    for step in range(min(steps, int(os.environ.get("MOST_STEPS", steps)))):
        file.write(json.dumps({{"step": step, "samples_per_s": 1000}}) + "\\n")
"""
PYTHON = NOTE + """
if sys.argv[1] == "-c":
    raise SystemExit(os.environ.get("NO_DEEPSPEED", 0) != 0)
print(json.dumps({"samples_per_s": 500, "first_step_s": 2}))
"""
TORCH = """
import os
print("cores", sorted(os.sched_getaffinity(0)), flush=True)
raise SystemExit
"""


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, stat.S_IRWXU)


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = folder.name
        write(f"{self.work}/bin/ringrun", RINGRUN)
        write(f"{self.work}/python", PYTHON)
        os.mkdir(f"{self.work}/data")
        with gzip.open(f"{self.work}/data/images.gz", "wt") as file:
            file.write("unpacked")

    def compare(self, **variables):
        env = dict(os.environ, NOTES=f"{self.work}/notes", OMP_NUM_THREADS="4", **variables)
        return subprocess.run(
            [sys.executable, f"{SOURCE}/perf/compare/compare_train.py", "--data",
             f"{self.work}/data", "--build", self.work, "--python", f"{self.work}/python",
             "--rounds", "1", "--only", "mlp"],
            env=env, capture_output=True, text=True)

    def notes(self, program):
        with open(f"{self.work}/notes") as file:
            calls = [json.loads(line) for line in file]
        return [(argv, env) for argv, env in calls if argv[0].endswith(program)]

    def test_both_make_the_same_steps(self):
        done = self.compare()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count(" 2.00 x"), 6)  # 1000 samples/s by 500
        theirs = {sum(int(argv[argv.index(name) + 1]) for name in ("--warmup", "--steps"))
                  for argv, _ in self.notes("/python") if "--steps" in argv}
        self.assertEqual(len(theirs), 1)
        ours = [int(call[call.index("--max-steps") + 1]) for call, _ in self.notes("/ringrun")
                if "--max-steps" in call]
        steps = theirs.pop()
        self.assertEqual(ours, [steps, 1, SAVED + steps] + [steps, 1] * 3)

    def test_products_are_the_slowest_rank_s(self):
        rows = [line for line in self.compare().stdout.splitlines() if "products" in line]
        self.assertEqual([int(row.split()[4]) for row in rows], [64 * 10000, 2 * 64 * 5000])

    def test_deepspeed_takes_part_where_it_is(self):
        self.assertEqual(self.compare().stdout.count("DeepSpeed"), 2)
        self.assertEqual(self.compare(NO_DEEPSPEED="1").stdout.count("DeepSpeed"), 0)

    def test_stages_are_asked_for(self):
        self.assertEqual(self.compare().returncode, 0)
        with open(f"{self.work}/notes.configs") as file:
            self.assertEqual(re.findall('"stage": ([0-3])', file.read()), ["1", "1", "2", "2"])

    def test_missing_steps_are_an_error(self):
        done = self.compare(MOST_STEPS=str(EPOCH))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"recorded {EPOCH} steps instead of 1800", done.stderr)

    def test_one_rank_is_bound_like_several_and_has_one_thread(self):
        self.compare()
        bound = []
        for argv, env in self.notes("/ringrun"):
            bound.append((argv[argv.index("-n") + 1], argv[argv.index("--bind-to") + 1]))
            self.assertEqual(env["OMP_NUM_THREADS"], "1")
        self.assertEqual(set(bound), {("1", "core"), ("2", "auto")})


class Peer(unittest.TestCase):
    """Where torch_mnist.py's rank runs when torch begins."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        write(f"{folder.name}/torch.py", TORCH)
        self.env = dict(os.environ, PYTHONPATH=folder.name)
        self.torch = f"{folder.name}/torch.py"

    def cores(self, command, **variables):
        done = subprocess.run(command, env=dict(self.env, **variables), capture_output=True,
                              text=True, check=True)
        return sorted(line.removeprefix("[1] ") for line in done.stdout.splitlines())

    def peer(self, rank, ranks):
        program = f"{SOURCE}/perf/compare/torch_mnist.py"
        return self.cores([sys.executable, program, "--data", "none"],
                          LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(ranks))

    def test_ranks_have_the_cores_that_ringrun_gives(self):
        for ranks in range(1, min(2, len(os.sched_getaffinity(0))) + 1):
            wanted = self.cores([f"{BIN}/ringrun", "-n", str(ranks), "--bind-to",
                                 "core" if ranks == 1 else "auto", sys.executable, self.torch],
                                OMP_NUM_THREADS="1")
            self.assertEqual(len(wanted), ranks)
            got = sum((self.peer(rank, ranks) for rank in range(ranks)), [])
            self.assertEqual(sorted(got), wanted)

    def test_more_ranks_than_cores_are_left_free(self):
        free = f"cores {sorted(os.sched_getaffinity(0))}"
        self.assertEqual(self.peer(0, len(os.sched_getaffinity(0)) + 1), [free])


unittest.main(argv=sys.argv[:1])
