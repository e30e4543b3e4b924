/* SPDX-License-Identifier: Apache-2.0
 *
 * small: measures the time of small messages in the same way for each library. small.py compiles
 * this file with small_ring.c or small_mpi.c, and runs it under the launcher of the library.
 *
 * There are two modes. In the mode "meet" a sample is one call: the ranks meet at a spinning
 * barrier of this file, in shared memory, then wait for a tick of their common clock, and so start
 * together. In the mode "row" a sample is many calls that follow each other immediately. The time
 * of a sample is from the latest start of a rank to the latest end of a rank, divided by the number
 * of calls. So a library gains nothing if one rank starts or returns early. A ping-pong counts
 * half. The result is the median over samples. The values of every sample are checked outside the
 * timing.
 *
 * usage: small BOARD plain|own OP,... BYTES,... SAMPLES    (BOARD: an empty file, best in /dev/shm)
 * Rank 0 prints JSON: a line about the run, then a line for each cell (operation, mode and size).
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

#define CELL_NS 300000000ll /* no sample starts later, because ranks that share a core are slow */

/* The memory that all ranks share. */
typedef struct board {
    struct {
        _Alignas(128) atomic_uint count;
    } arrivals[MAX_RANKS];
    atomic_ulong wrong;
    atomic_int stop; /* number of the first sample that is not taken */
    cpu_set_t cpus[MAX_RANKS];
    int64_t starts[MAX_RANKS][MAX_SAMPLES], ends[MAX_RANKS][MAX_SAMPLES];
} board;

static small_self self;
static board *shared;

static void die(const char *reason)
{
    fprintf(stderr, "small: rank %d: %s\n", self.rank, reason);
    exit(BAD);
}

/* ---- The barrier ---- */

static void meet(void)
{
    const unsigned round = atomic_load(&shared->arrivals[self.rank].count) + 1;
    atomic_store(&shared->arrivals[self.rank].count, round);
    for (int rank = 0; rank < self.ranks; rank++)
        for (int spins = 1; (int)(atomic_load(&shared->arrivals[rank].count) - round) < 0;
             spins++) {
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
            if (spins % SPINS == 0)
                sched_yield(); /* ranks may share a core */
        }
}

/* ---- Operations ---- */

typedef struct operation {
    const char *name;
    void (*call)(const small_self *self, float *buffer, size_t count);
    /* @return the value of element i of a block after a number of calls in place. */
    double (*expect)(size_t i, unsigned seed, int block, int calls);
    bool sized;   /* has a buffer */
    bool blocks;  /* the buffer has a block for each rank */
    int messages; /* successive messages of a call; its time is divided by their number */
} operation;

/* @return the value that stopwatch_rewrite() has written to element i on a rank. */
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

/* The first call gives all ranks the sum, and each further call in place multiplies it by the
 * number of ranks. */
static double expect_all_reduced(size_t i, unsigned seed, int block, int calls)
{
    (void)block;
    return sum_from(0, i, seed) * pow(self.ranks, calls - 1);
}

/* Each call in place adds the inputs of the other ranks to the root's value; theirs do not
 * change. */
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

/* Sums are exact only if the number of ranks is a power of two, so the comparison has a tolerance.
 * A NaN is wrong, too. */
static unsigned long count_wrong(const cell *c, unsigned seed)
{
    unsigned long wrong = 0;
    const int blocks = c->op->blocks ? self.ranks : 1;
    for (int block = 0; c->op->expect && block < blocks; block++)
        for (size_t i = 0; i < c->count; i++) {
            const double value = c->buffer[(size_t)block * c->count + i];
            const double expected = c->op->expect(i, seed, block, c->calls);
            wrong += !(fabs(value - expected) <= 1e-4 * fabs(expected));
        }
    return wrong;
}

/* Waits until all ranks are ready for a sample. If the time is up, rank 0 writes the sample's
 * number to `stop` before it meets the others; they compare numbers, because a slow rank may read
 * `stop` only during the next sample.
 * @return false if the sample is not to be taken. */
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
    float *own_block = c->buffer + (c->op->blocks ? (size_t)self.rank * c->count : 0);
    if (c->op->blocks)
        memset(c->buffer, 0xff, (size_t)self.ranks * c->count * sizeof(float)); /* NaN */
    stopwatch_rewrite(own_block, c->count, seed + (unsigned)self.rank);
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

static void print_cell(const cell *c, const char *mode, int samples)
{
    static double times[MAX_SAMPLES];
    for (int i = 0; i < samples; i++)
        times[i] = (double)(latest(shared->ends, i) - latest(shared->starts, i)) * 1e-3;
    const double sample_us = stopwatch_median(times, (size_t)samples);
    printf("{\"op\": \"%s\", \"mode\": \"%s\", \"bytes\": %zu, \"samples\": %d, "
           "\"time_us\": %.6g, \"wrong\": %lu}\n",
           c->op->name, mode, c->count * sizeof(float), samples,
           sample_us / c->calls / c->op->messages, atomic_load(&shared->wrong));
}

static void measure_cell(cell *c, const char *mode)
{
    int sample = -c->warmup;
    c->begin = stopwatch_ns();
    while (sample < c->samples && measure_sample(c, sample))
        sample++;
    meet(); /* now all ranks have written their times and counts */
    if (self.rank == 0) {
        print_cell(c, mode, sample);
        atomic_store(&shared->wrong, 0);
        atomic_store(&shared->stop, INT_MAX);
    }
    meet();
}

static void measure_size(const operation *op, size_t bytes, int samples, bool own, bool gate)
{
    const size_t blocks = op->blocks ? (size_t)self.ranks : 1;
    float *buffer = small_alloc(blocks * bytes + 1, own);
    if (!buffer)
        die("not enough memory for the buffer");
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
    /* The number of calls is limited, so that sums in place do not overflow a float. If ranks share
     * cores, it is smaller, because a call may take milliseconds. */
    row.calls = (int)((gate ? 100 : 10) / fmax(1, ceil(log2(self.ranks))));
    measure_cell(&meeting, "meet");
    measure_cell(&row, "row");
    small_free(buffer, own);
}

/* ---- The run ---- */

static void open_board(const char *path)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || ftruncate(fd, sizeof *shared) != 0)
        die("cannot open or resize the file BOARD");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (shared == MAP_FAILED)
        die("cannot map the file BOARD");
    sched_getaffinity(0, sizeof shared->cpus[0], &shared->cpus[self.rank]);
}

/* @return true if no two ranks may run on the same CPU. */
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
    atomic_store(&shared->stop, INT_MAX); /* all ranks write the same value */
    meet();
    const bool bound = is_bound(), own = strcmp(argv[2], "own") == 0;
    if (self.rank == 0)
        printf("{\"library\": \"%s\", \"ranks\": %d, \"bound\": %s}\n", small_library(), self.ranks,
               bound ? "true" : "false");
    measure_all(argv[3], argv[4], samples, own, stopwatch_gate_useful(1, self.ranks));
    small_close();
    return 0;
}
