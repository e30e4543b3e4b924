# SPDX-License-Identifier: Apache-2.0
"""What each stage of tests/gpu runs: on a GPU, or less of it in a rehearsal over the double."""

import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

from mps import mps_of
from nccl_stage import stage_n
from programs import figures_of, tool_path
from trainer_stage import stage_t

HERE = Path(__file__).resolve().parent
KERNELS = ("fold", "cast", "optimizer", "norm", "pack")
ALGORITHMS = ("ring", "direct", "oneshot", "halving", "tree")
MIB = 1 << 20
REFUSED = "its stream is captured into a graph"


class Amount:
    """Of work: `real` on a GPU; `rehearsed`, times a factor in long runs, over the double."""

    def __init__(self, factor):
        self.is_real, self.factor = factor == 0, factor

    def __call__(self, real, rehearsed):
        return real if self.is_real else self.factor * rehearsed

    def program(self, name):
        linked_twice = ("sweep", "ringperf", "ringtrain")
        return name if self.is_real or name not in linked_twice else name + "_doubled"


def device_tests():
    """Names of the accelerator's tests, from their source, which a pack contains."""
    name = "test_cuda_device.c"
    path = next(p for p in (HERE / name, HERE.parent / "kernels" / name) if p.exists())
    return re.findall(r"\bTEST\((\w+)\)", path.read_text())


def size_text(size):
    for unit, bytes_ in (("MiB", MIB), ("KiB", 1024)):
        if size >= bytes_:
            return f"{size // bytes_} {unit}"
    return f"{size} B"


# ---- A: right values ----------------------------------------------------------------------------


def kernel_jobs(amount):
    parts = amount(6, 1)
    for part in range(parts):  # the longest begin first
        yield (f"folds of all sizes, part {part + 1} of {parts}",
               ["gpu_sizes", amount(16777221, 300), part, parts])
    few = {"RING_GPU_ONE_CASE_OF": str(amount(4, 60))}  # each seed draws others
    for kernels in KERNELS:
        for seed in range(1, amount(4, 1) + 1):
            yield (f"kernels: {kernels}, seed {seed}", [f"gpu_{kernels}"],
                   {"env": {**few, "RING_TEST_SEED": str(seed)}})
    for test in device_tests():
        yield ("accelerator: " + test.replace("_", " "), ["gpu_device", test],
               {"may_skip": True})


def calls_jobs(amount):
    """Calls of ranks that share a GPU, by gpu_calls."""
    # Streams that share a hardware queue may hold up each other's copies (docs/devices.md). With
    # 32 queues they do not share: for communicators that end, which use many streams, and over the
    # double, which copies to set memory where a GPU would launch a kernel.
    own_queues = {"env": {"CUDA_DEVICE_MAX_CONNECTIONS": "32"}}
    for kind in ("threads", "processes"):
        for ranks in (2, 4):
            for mode, number, rehearsed in (("delays", 2000, 30), ("plain", 300, 10),
                                            ("frees", 500, 30), ("aborts", 10, 2)):
                yield (f"calls: {mode}, {ranks} {kind}",
                       ["gpu_calls", mode, ranks, kind, amount(number, rehearsed)],
                       {} if amount.is_real and mode != "aborts" else own_queues)
        yield (f"calls: graphs, 2 {kind} that share a GPU",
               ["gpu_calls", "graphs", 2, kind, amount(1000, 10)])
    for ranks, number in ((2, 1), (2, 2), (4, 32)) if amount.is_real else ():
        yield (f"calls: delays, {ranks} threads, {number} hardware queues",
               ["gpu_calls", "delays", ranks, "threads", 500],
               {"env": {"CUDA_DEVICE_MAX_CONNECTIONS": str(number)}})
    yield ("calls: graphs, 2 threads with a GPU each",
           ["gpu_calls", "graphs", 2, "threads", amount(1000, 10), 2],
           {"may_skip": True, "env": {} if amount.is_real else {"FAKE_CUDA_DEVICES": "2"}})


def collective_jobs(amount, transports=("loop", "shm", "tcp"), under_mps=False):
    mode = "pairwise" if amount.is_real or amount.factor > 1 else "sample"
    sweep = [amount.program("sweep"), "--memory", "cuda", "--mode", mode, "--ranks", "2,4"]
    for transport in transports:
        host = [] if transport == "loop" or under_mps else ["--by-host"]  # which processes share
        for algorithm in ALGORITHMS[:amount(5, 2)]:
            yield (f"collectives over {transport} by {algorithm}",
                   [*sweep, "--transport", transport, "--algo", algorithm, *host])
        for by in ("ring", "direct") if transport == "loop" else ("ring",):
            yield (f"collectives over {transport} by {by} on streams",
                   [*sweep, "--transport", transport, "--algo", by, "--stream", *host])


def stage_a(stage, amount):
    jobs = [*kernel_jobs(amount), *calls_jobs(amount), *collective_jobs(amount)]
    stage.side_by_side(jobs)


# ---- B: figures ---------------------------------------------------------------------------------


# Before a program: each process is on a host of its own.
ON_HOSTS = ("sh", "-c", 'RING_HOST_ID=$RANK exec "$@"', "sh")


def measure(stage, amount, collective, ranks, kind, options=(), title="", env=None,
            device="cuda:0"):
    """ringperf's times of a collective, each a result. @return {bytes: seconds}, out of place."""
    name = f"{collective}, {ranks} {kind}" + ("" if not title else f" {title}")
    argv = [amount.program("ringperf"), collective, "--device", device, *options]
    before = [] if kind == "threads" else [stage.launcher, "-n", str(ranks)]
    before += ON_HOSTS if kind == "hosts" else []
    argv += ["-g", str(ranks)] if kind == "threads" else []
    times = {}
    with tempfile.TemporaryDirectory(prefix="ringperf-") as folder:
        outcome = stage.program(f"ringperf {name}", [*argv, "--json", Path(folder) / "times"],
                                env=env, before=before)
        # A ringperf that was killed leaves its results in a file of another name.
        lines = [line for path in Path(folder).iterdir()
                 for line in path.read_text().splitlines(keepends=True)]
        rows = [json.loads(line) for line in lines if line.endswith("}\n")]
    for row in rows:
        place = ", in place" if row["in_place"] else ""
        text = name.replace(",", f" of {size_text(row['bytes'])},", 1) + place
        stage.row(text, float(row["time_us"]), "us", good=not row["wrong"])
        if not row["in_place"]:
            times[row["bytes"]] = row["time_us"] / 1e6
    if not times and outcome is not None and outcome.good:
        stage.row(f"figures of {name}", "FAILED: ringperf wrote none", good=False)
    return times


def share_of_bound(stage, times, ranks, title, copied):
    """Of 256 MiB: each byte of all ranks is read and written once at the rate of the copy."""
    size = 256 * MIB
    if copied and size in times:
        bound = 2 * ranks * size / (copied * 1e9)
        stage.row(f"all_reduce of 256 MiB, {ranks} {title}, share of the bound",
                  bound / times[size])


def share_of_host(stage, times, of_host, title):
    """@param of_host  the times of the same call with memory of the host."""
    for size in times.keys() & of_host.keys():
        if size == max(times):
            stage.row(f"all_reduce of {size_text(size)}, {title}, share of the rate with the "
                      "host's memory", of_host[size] / times[size])


def measure_all_reduce(stage, amount, ranks, copied):
    small = ["-b", "8", "-e", "8M" if amount.is_real else "8K", "-f", "32",
             "-n", str(amount(20, 3)), "-w", "1"]
    large = ["-b", "256M", "-e", "256M", "-n", "2", "-w", "1", "-c", "0"]  # 15 s if the host drives
    for kind in ("threads", "processes"):
        for stream in (["--stream"], []):
            title = "on a stream" if stream else ""
            measure(stage, amount, "all_reduce", ranks, kind, [*stream, *small], title)
            if amount.is_real:
                times = measure(stage, amount, "all_reduce", ranks, kind, [*stream, *large], title)
                share_of_bound(stage, times, ranks, f"{kind} {title}".strip(), copied)


def measure_others(stage, amount):
    sizes = ["-b", "8", "-e", "8M" if amount.is_real else "256", "-f", "1024" if amount.is_real
             else "32", "-n", str(amount(20, 3)), "-w", "1"]
    measure(stage, amount, "all_reduce", 2, "processes", sizes, "over tcp",
            {"RING_TRANSPORT": "tcp"})
    others = ("sendrecv", "all_gather", "reduce_scatter", "broadcast", "all_to_all")
    for collective in others[:amount(5, 1)]:
        for stream in (["--stream"], []):
            measure(stage, amount, collective, 2, "threads", [*stream, *sizes],
                    "on a stream" if stream else "")
    ringperf = [amount.program("ringperf"), "all_reduce", "-g", "2", "--graph", "4",
                "-b", "8", "-e", "8K", "-f", "32", "-n", "20", "--device"]
    stage.program("graph of all_reduce, 2 threads that share a GPU", [*ringperf, "cuda:0"],
                  fails_with=REFUSED)
    if not amount.is_real:
        stage.program("graph of all_reduce, 2 threads with a GPU each", [*ringperf, "cuda"],
                      env={"FAKE_CUDA_DEVICES": "2"})
    elif stage.devices > 1:
        measure(stage, amount, "all_reduce", 2, "threads",
                ["--device", "cuda", "--graph", "10", *sizes], "with a GPU each, in a graph")


def stage_b(stage, amount):
    size = amount(256 * MIB, MIB)
    speeds = figures_of(stage.program(f"kernels at {size_text(size)}",
                                      ["gpu_speed", size, amount(20, 1)]))
    for name, (value, unit) in speeds.items():
        stage.row(name, value, unit)
    copied = speeds.get("device copy, bytes moved", (None,))[0]
    measure_all_reduce(stage, amount, 2, copied)
    torch = stage.command("PyTorch beside them", [sys.executable, HERE / "torch_beside.py", size],
                          may_skip=True)
    for name, (value, unit) in figures_of(torch).items():
        stage.row(name, value, unit)
    measure_others(stage, amount)
    if amount.is_real:
        measure_all_reduce(stage, amount, 4, copied)


# ---- C: compute-sanitizer -----------------------------------------------------------------------


def stage_c(stage, amount):
    sanitizer = stage.tools["sanitizer"] or shutil.which("compute-sanitizer", path=tool_path())
    if sanitizer is None:
        stage.row("compute-sanitizer", "not found")
        return
    # Calls of the driver that fail are not findings: the library asks for what may not be there.
    memcheck = ["memcheck", "--report-api-errors", "no"]
    jobs = [(memcheck, ["gpu_calls", mode, 2, kind, amount(20, 5)])
            for mode in ("delays", "plain") for kind in ("threads", "processes")]
    jobs += [(memcheck, ["gpu_sizes", amount(65537, 300)])]
    jobs += [(tool, [f"gpu_{kernels}"]) for kernels in KERNELS
             for tool in (memcheck, ["racecheck"], ["synccheck"], ["initcheck"])[:amount(4, 1)]]
    few = {"RING_GPU_ONE_CASE_OF": str(amount(60, 200)), "RING_TEST_SEED": "1"}
    stage.side_by_side([
        (f"{tool[0]}: " + " ".join(map(str, argv)), argv,
         {"env": few, "before": [sanitizer, "--target-processes", "all", "--error-exitcode", "9",
                                 "--tool", *tool]})
        for tool, argv in jobs])


# ---- M: processes under MPS ---------------------------------------------------------------------


def stage_m(stage, amount):
    with mps_of(stage, amount) as is_running:
        if not is_running:
            return
        jobs = [job for job in calls_jobs(amount) if "processes" in job[0]]
        stage.side_by_side([*jobs, *collective_jobs(amount, ("shm",), True)])
        sizes = ["-b", "8", "-e", "256M" if amount.is_real else "256", "-f", "32",
                 "-n", str(amount(5, 3)), "-w", "1", "-c", str(amount(0, 1))]
        for stream in (["--stream"], []):
            measure(stage, amount, "all_reduce", 2, "processes", [*stream, *sizes],
                    "under MPS" + (" on a stream" if stream else ""))
        for kind, env in (("processes", {"RING_P2P": "0", "RING_TRANSPORT": "shm"}),
                          ("hosts", {"RING_TRANSPORT": "tcp"})):
            title = "through memory of the host" if kind == "processes" else "over tcp"
            times = measure(stage, amount, "all_reduce", 2, kind, ["--stream", *sizes],
                            f"under MPS on a stream {title}", env)
            of_host = measure(stage, amount, "all_reduce", 2, kind, sizes, "of the host's memory",
                              env, "cpu")
            share_of_host(stage, times, of_host, f"2 {kind} {title}")
        measure(stage, amount, "sendrecv", 2, "processes", ["--stream", *sizes],
                "under MPS on a stream")


STAGES = {"A": stage_a, "B": stage_b, "C": stage_c, "M": stage_m, "N": stage_n,
          "T": stage_t}
