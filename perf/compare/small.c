/* SPDX-License-Identifier: Apache-2.0
 *
 * small: the time of small messages, measured in the same way whatever the library; small.py
 * compiles this file with small_ring.c or small_mpi.c and starts it under the library's launcher.
 *
 * A sample is one call that all ranks start together ("meet": they meet at a spinning barrier
 * in shared memory that is the harness's own, then wait for one tick of the clock that they
 * share), or a row of calls with nothing between them ("row"). Its time runs from the latest
 * rank's start to the latest rank's end, divided by the calls; a ping-pong counts half. So no
 * library gains by a rank that returns early or that starts ahead. The median over samples counts.
 * Every sample's values are checked, outside the timing.
 *
 * usage: small BOARD plain|own OP,... BYTES,... SAMPLES    (BOARD: an empty file, best in /dev/shm)
 * Rank 0 prints JSON: a line about the run, then a line a cell.
 */
#include "small.h"
#include "stopwatch.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { MAX_RANKS = 64, MAX_SAMPLES = 4096, WARMUP = 20, ROW_WARMUP = 2, SPINS = 2000, BAD = 2 };

#define CELL_NS 300000000ll /* no new sample after this: ranks that share a core may be slow */

/* Shared memory of the ranks. */
typedef struct board {
    struct {
        _Alignas(128) atomic_uint count;
    } arrivals[MAX_RANKS];
    atomic_ulong wrong;
    atomic_int stop; /* number of the first sample not to be taken */
    cpu_set_t cpus[MAX_RANKS];
    int64_t starts[MAX_RANKS][MAX_SAMPLES], ends[MAX_RANKS][MAX_SAMPLES];
} board;

static small_self self;
static board *shared;

static void die(const char *why)
{
    fprintf(stderr, "small: rank %d: %s\n", self.rank, why);
    exit(BAD);
}

/* ---- The harness's own barrier ---- */

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static bool has_arrived(int rank, unsigned round)
{
    return (int)(atomic_load(&shared->arrivals[rank].count) - round) >= 0;
}

static void meet(void)
{
    const unsigned round = atomic_load(&shared->arrivals[self.rank].count) + 1;
    atomic_store(&shared->arrivals[self.rank].count, round);
    for (int rank = 0; rank < self.ranks; rank++)
        for (int spins = 1; !has_arrived(rank, round); spins++) {
            relax();
            if (spins % SPINS == 0)
                sched_yield(); /* ranks may share a core */
        }
}

/* ---- Operations: the call, and an element's value after a number of calls ---- */

typedef struct operation {
    const char *name;
    void (*call)(const small_self *self, float *buffer, size_t count);
    double (*expect)(size_t i, unsigned seed, int block, int calls);
    bool sized, blocks;
    int messages; /* messages in a row; the time is divided by them */
} operation;

/* The value that stopwatch_rewrite() wrote on a rank. */
static double before(size_t i, unsigned seed, int rank)
{
    return (double)((i + seed + (unsigned)rank) & 63);
}

static double sum_from(int rank, size_t i, unsigned seed)
{
    double sum = 0;
    for (; rank < self.ranks; rank++)
        sum += before(i, seed, rank);
    return sum;
}

/* In place: from the second call on, every rank's value is the same. */
static double expect_all_reduced(size_t i, unsigned seed, int block, int calls)
{
    (void)block;
    return sum_from(0, i, seed) * pow(self.ranks, calls - 1);
}

/* In place: the root's share grows, the others' stays. */
static double expect_reduced(size_t i, unsigned seed, int block, int calls)
{
    (void)block;
    const double own = before(i, seed, self.rank);
    return self.rank == 0 ? own + calls * sum_from(1, i, seed) : own;
}

static double expect_root(size_t i, unsigned seed, int block, int calls)
{
    (void)block, (void)calls;
    return before(i, seed, 0);
}

static double expect_block(size_t i, unsigned seed, int block, int calls)
{
    (void)calls;
    return before(i, seed, block);
}

static double expect_pair(size_t i, unsigned seed, int block, int calls)
{
    (void)block, (void)calls;
    return before(i, seed, self.rank & ~1);
}

static const operation operations[] = {
    {"all_reduce", small_all_reduce, expect_all_reduced, true, false, 1},
    {"broadcast", small_broadcast, expect_root, true, false, 1},
    {"reduce", small_reduce, expect_reduced, true, false, 1},
    {"all_gather", small_all_gather, expect_block, true, true, 1},
    {"ping_pong", small_ping_pong, expect_pair, true, false, 2},
    {"barrier", small_barrier, NULL, false, false, 1},
};

static const operation *find_operation(const char *name)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (strcmp(operations[i].name, name) == 0)
            return &operations[i];
    die("unknown operation");
    return NULL;
}

/* ---- One cell ---- */

typedef struct cell {
    const operation *op;
    float *buffer;
    size_t count; /* elements of a block */
    int warmup, samples, calls;
    int64_t begin;
    bool gate;
} cell;

static float *own_block(const cell *c)
{
    return c->buffer + (c->op->blocks ? (size_t)self.rank * c->count : 0);
}

static void rewrite(const cell *c, unsigned seed)
{
    if (c->op->blocks)
        memset(c->buffer, 0xff, (size_t)self.ranks * c->count * sizeof(float)); /* NaN */
    stopwatch_rewrite(own_block(c), c->count, seed + (unsigned)self.rank);
}

/* A sum of powers of two times small integers is exact; other numbers of ranks round. */
static bool is_wrong(float got, double want)
{
    return !(fabs(got - want) <= 1e-4 * fabs(want));
}

static unsigned long count_wrong(const cell *c, unsigned seed)
{
    unsigned long wrong = 0;
    const int blocks = c->op->blocks ? self.ranks : 1;
    for (int block = 0; c->op->expect && block < blocks; block++)
        for (size_t i = 0; i < c->count; i++)
            wrong += is_wrong(c->buffer[(size_t)block * c->count + i],
                              c->op->expect(i, seed, block, c->calls));
    return wrong;
}

/* Meets for a sample, unless rank 0 says that time is up. It writes the sample's number to `stop`
 * before it meets, so a late reader does not take it for an earlier one. */
static bool begin_sample(const cell *c, int sample)
{
    if (self.rank == 0 && sample > 0 && stopwatch_ns() - c->begin > CELL_NS)
        atomic_store(&shared->stop, sample);
    meet();
    return sample < atomic_load(&shared->stop);
}

static bool measure_sample(const cell *c, int sample)
{
    const unsigned seed = (unsigned)(sample + WARMUP);
    rewrite(c, seed);
    if (!begin_sample(c, sample))
        return false;
    if (c->gate)
        stopwatch_gate();
    const int64_t start = stopwatch_ns();
    for (int i = 0; i < c->calls; i++)
        c->op->call(&self, c->buffer, c->count);
    const int64_t end = stopwatch_ns();
    if (sample >= 0) {
        shared->starts[self.rank][sample] = start;
        shared->ends[self.rank][sample] = end;
    }
    const unsigned long wrong = count_wrong(c, seed);
    if (wrong > 0)
        atomic_fetch_add(&shared->wrong, wrong);
    return true;
}

static int64_t latest(int64_t times[MAX_RANKS][MAX_SAMPLES], int sample)
{
    int64_t last = times[0][sample];
    for (int rank = 1; rank < self.ranks; rank++)
        if (times[rank][sample] > last)
            last = times[rank][sample];
    return last;
}

static double median_us(const cell *c, int samples)
{
    static double times[MAX_SAMPLES];
    for (int i = 0; i < samples; i++)
        times[i] = (double)(latest(shared->ends, i) - latest(shared->starts, i)) * 1e-3;
    return stopwatch_median(times, (size_t)samples) / c->calls / c->op->messages;
}

static void print_cell(const cell *c, const char *mode, int samples)
{
    printf("{\"op\": \"%s\", \"mode\": \"%s\", \"bytes\": %zu, \"samples\": %d, "
           "\"time_us\": %.6g, \"wrong\": %lu}\n",
           c->op->name, mode, c->count * sizeof(float), samples, median_us(c, samples),
           atomic_load(&shared->wrong));
}

static void measure_cell(cell *c, const char *mode)
{
    int sample = -c->warmup;
    c->begin = stopwatch_ns();
    while (sample < c->samples && measure_sample(c, sample))
        sample++;
    meet(); /* all times and counts have been written */
    if (self.rank == 0) {
        print_cell(c, mode, sample);
        atomic_store(&shared->wrong, 0);
        atomic_store(&shared->stop, INT_MAX);
    }
    meet();
}

/* Few enough that sums in place stay below a float's largest value; fewer where ranks share cores,
 * as a call may take milliseconds. */
static int calls_in_a_row(bool gate)
{
    return (int)((gate ? 100 : 10) / fmax(1, ceil(log2(self.ranks))));
}

static void measure_size(const operation *op, size_t bytes, int samples, bool own, bool gate)
{
    const size_t blocks = op->blocks ? (size_t)self.ranks : 1;
    float *buffer = small_alloc(blocks * bytes + 1, own);
    if (!buffer)
        die("no memory for the buffer");
    cell meeting = {.op = op,
                    .buffer = buffer,
                    .count = bytes / sizeof(float),
                    .gate = gate,
                    .warmup = WARMUP,
                    .samples = samples,
                    .calls = 1};
    cell row = meeting;
    row.warmup = ROW_WARMUP;
    row.samples = samples / 10 + 1;
    row.calls = calls_in_a_row(gate);
    measure_cell(&meeting, "meet");
    measure_cell(&row, "row");
    small_free(buffer, own);
}

/* ---- The run ---- */

static void open_board(const char *path)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || ftruncate(fd, sizeof *shared) != 0)
        die("cannot open the board");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (shared == MAP_FAILED)
        die("cannot map the board");
    sched_getaffinity(0, sizeof shared->cpus[0], &shared->cpus[self.rank]);
}

/* Whether each rank has CPUs that no other one has. */
static bool is_bound(void)
{
    cpu_set_t common;
    for (int a = 0; a < self.ranks; a++)
        for (int b = 0; b < a; b++) {
            CPU_AND(&common, &shared->cpus[a], &shared->cpus[b]);
            if (CPU_COUNT(&common) > 0)
                return false;
        }
    return true;
}

static void measure_all(char *ops, char *sizes, int samples, bool own, bool gate)
{
    for (char *rest, *name = strtok_r(ops, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        const operation *op = find_operation(name);
        char *end = sizes;
        while (op->sized && *end != '\0') {
            measure_size(op, strtoull(end, &end, 10), samples, own, gate);
            end += *end == ',';
        }
        if (!op->sized)
            measure_size(op, 0, samples, own, gate);
    }
}

int main(int argc, char **argv)
{
    small_open(&argc, &argv, &self);
    const int samples = argc == 6 ? atoi(argv[5]) : 0;
    if (samples < 1 || samples > MAX_SAMPLES || self.ranks > MAX_RANKS)
        die("usage: small BOARD plain|own OP,... BYTES,... SAMPLES (at most 4096; 64 ranks)");
    open_board(argv[1]);
    atomic_store(&shared->stop, INT_MAX); /* all ranks' alike */
    meet();
    const bool bound = is_bound(), own = strcmp(argv[2], "own") == 0;
    if (self.rank == 0)
        printf("{\"library\": \"%s\", \"ranks\": %d, \"bound\": %s}\n", small_library(), self.ranks,
               bound ? "true" : "false");
    measure_all(argv[3], argv[4], samples, own, stopwatch_gate_useful(1, self.ranks));
    small_close();
    return 0;
}
