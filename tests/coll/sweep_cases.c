/* SPDX-License-Identifier: Apache-2.0
 *
 * Which cases. A case has a level of each factor. Pairwise: on every communicator each two
 * levels of two factors meet in some case; wrong arithmetic, offsets and waits mostly show
 * where two choices meet. Each new case takes a pair that is missing and fills up with what
 * brings most other ones.
 */
#include "coll_sweep.h"
#include "draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIND, DTYPE, OP, COUNT, IN_PLACE, SHARED, DATA, ROOT, FACTORS };
/* Operations on bits are in test_bits.c. */
static const ring_op ops[] = {RING_SUM, RING_PROD, RING_MAX, RING_MIN, RING_AVG, RING_PREMUL_SUM};
enum { OPS = sizeof ops / sizeof *ops };
enum { ONE_IN = 16 }; /* cases that a sample draws; it has no large vectors */
enum { COUNTS = 15, LARGE_COUNTS = 2, MOST_LEVELS = 16, FEW_RANKS = 4 };

typedef struct row {
    int level[FACTORS]; /* -1: not chosen yet */
} row;

/* ---- Levels as cases ------------------------------------------------------------------- */

/* The largest one is for few ranks where every rank has a block of it. */
static size_t count_of(int level, int ranks, bool blocks)
{
    const size_t n = (size_t)ranks, large = 1 << 20;
    const size_t counts[COUNTS] = {
        0, 1, n > 1 ? n - 1 : 2, n, n + 1, 17, 63, 65, 251, 1023, 1025, 4096, 10007, 65537, large};
    return blocks && ranks > FEW_RANKS && counts[level] == large ? large / n : counts[level];
}

/* An average is of all ranks; factors are for floats. */
static ring_op op_of(const row *r)
{
    const ring_op op = ops[r->level[OP]];
    const int dtype = r->level[DTYPE];
    if (op == RING_AVG)
        return sweep_is_prefix((sweep_kind)r->level[KIND]) ? RING_SUM : op;
    return op == RING_PREMUL_SUM && !oracle_is_float((ring_dtype)dtype) ? RING_SUM : op;
}

static sweep_case case_of(const row *r, int ranks, unsigned seed)
{
    const sweep_kind kind = (sweep_kind)r->level[KIND];
    return (sweep_case){.ranks = ranks,
                        .kind = kind,
                        .dtype = (ring_dtype)r->level[DTYPE],
                        .op = op_of(r),
                        .count = count_of(r->level[COUNT], ranks, sweep_has_blocks(kind)),
                        .in_place = r->level[IN_PLACE] && kind != SWEEP_ALL_TO_ALL,
                        .shared = r->level[SHARED],
                        .data = (oracle_data)r->level[DATA],
                        .root = r->level[ROOT] % ranks,
                        .seed = seed};
}

static void add(sweep_cases *list, sweep_case c)
{
    if ((list->count & (list->count - 1)) == 0) { /* full: 0, 1, 2, 4, … */
        list->all = realloc(list->all, (list->count > 0 ? 2 * list->count : 1) * sizeof c);
        if (list->all == NULL)
            abort();
    }
    list->all[list->count++] = c;
}

/* ---- Pairs ----------------------------------------------------------------------------- */

typedef struct pairs {
    int levels[FACTORS]; /* how many */
    bool seen[FACTORS][MOST_LEVELS][FACTORS][MOST_LEVELS];
    row rows[512];
    int row_count;
} pairs;

static bool matters(int factor, int kind)
{
    if (factor == OP)
        return sweep_reduces((sweep_kind)kind);
    return factor != ROOT || sweep_has_root((sweep_kind)kind);
}

/* A collective has no pair with a factor that it does not know. */
static bool is_wanted(int f, int v, int g, int w)
{
    return (f != KIND || matters(g, v)) && (g != KIND || matters(f, w));
}

static bool has_pair(const row *r, int f, int g)
{
    return r->level[f] >= 0 && r->level[g] >= 0 && matters(f, r->level[KIND]) &&
           matters(g, r->level[KIND]);
}

/* Pairs of factor @p f with the levels that are chosen, that no case has had. */
static int new_pairs(const pairs *p, const row *r, int f)
{
    int count = 0;
    for (int g = 0; g < FACTORS; g++)
        count += g != f && has_pair(r, f, g) && !p->seen[f][r->level[f]][g][r->level[g]];
    return count;
}

/* Of levels that are as good, another one each time. */
static void choose_level(const pairs *p, row *r, int f)
{
    int best = 0, most = -1;
    for (int i = 0; i < p->levels[f]; i++) {
        r->level[f] = (i + p->row_count) % p->levels[f];
        const int gain = new_pairs(p, r, f);
        if (gain > most) {
            most = gain;
            best = r->level[f];
        }
    }
    r->level[f] = best;
}

/* The best completion: every collective is tried, for it decides what matters. */
static row complete(const pairs *p, const row *begun)
{
    row best = *begun;
    int most = 0;
    for (int kind = 0; kind < SWEEP_KINDS; kind++) {
        row r = *begun;
        int gain = 0;
        r.level[KIND] = kind;
        for (int f = 0; f < FACTORS; f++) {
            if (r.level[f] < 0)
                choose_level(p, &r, f);
        }
        for (int f = 0; f < FACTORS; f++)
            gain += new_pairs(p, &r, f);
        if (gain > most) {
            most = gain;
            best = r;
        }
    }
    return best;
}

static void add_row(pairs *p, row r)
{
    if (p->row_count == sizeof p->rows / sizeof *p->rows)
        abort();
    p->rows[p->row_count++] = r;
    for (int f = 0; f < FACTORS; f++)
        for (int g = 0; g < FACTORS; g++)
            if (has_pair(&r, f, g))
                p->seen[f][r.level[f]][g][r.level[g]] = true;
}

typedef bool (*pair_test)(const pairs *p, int f, int v, int g, int w);

static bool is_seen(const pairs *p, int f, int v, int g, int w)
{
    return p->seen[f][v][g][w];
}

static bool is_in_a_row(const pairs *p, int f, int v, int g, int w)
{
    for (int i = 0; i < p->row_count; i++)
        if (p->rows[i].level[f] == v && p->rows[i].level[g] == w && has_pair(&p->rows[i], f, g))
            return true;
    return false;
}

static bool finds_missing(const pairs *p, pair_test test, int f, int g, row *begun)
{
    memset(begun, 0xff, sizeof *begun); /* -1 */
    for (int v = 0; v < p->levels[f]; v++) {
        for (int w = 0; w < p->levels[g]; w++) {
            if (!is_wanted(f, v, g, w) || test(p, f, v, g, w))
                continue;
            begun->level[f] = v;
            begun->level[g] = w;
            return true;
        }
    }
    return false;
}

/* @param[out] begun  has a missing pair, and nothing else. @return false if there is none. */
static bool find_missing(const pairs *p, pair_test test, row *begun)
{
    for (int f = 0; f < FACTORS; f++)
        for (int g = f + 1; g < FACTORS; g++)
            if (finds_missing(p, test, f, g, begun))
                return true;
    return false;
}

/* The books say what is missing; whether all is there at the end, the rows themselves. */
static void make_rows(pairs *p)
{
    row begun;
    while (find_missing(p, is_seen, &begun))
        add_row(p, complete(p, &begun));
    if (find_missing(p, is_in_a_row, &begun)) {
        fprintf(stderr, "the sweep's pairwise cases miss a pair of levels\n");
        abort();
    }
}

static void add_pairwise(sweep_cases *list, int ranks, bool sample)
{
    static pairs p; /* large */
    const int counts = COUNTS - (sample ? LARGE_COUNTS : 0);
    uint64_t state = sample ? test_seed() + (uint64_t)ranks : 0;
    p = (pairs){.levels = {SWEEP_KINDS, RING_DTYPE_COUNT, OPS, counts, 2, 2, 2,
                           ranks < MOST_LEVELS ? ranks : MOST_LEVELS}};
    make_rows(&p);
    for (int i = 0; i < p.row_count; i++)
        if (!sample || test_draw(&state, ONE_IN) == 0)
            add(list, case_of(&p.rows[i], ranks, (unsigned)(ranks * 1000 + i)));
}

/* ---- Sliced ---------------------------------------------------------------------------- */

/* Sums that go round a circle go slice by slice where chunks are longer than what links hold
 * (TRANSPORT_WINDOW segments, 64 Ki float32): so they are if the vector is longer than 32 times
 * that, for no algorithm makes more chunks of it. */
static void add_sliced(sweep_cases *list, int ranks)
{
    const size_t total = 33 << 16;
    for (int kind = 0; kind < SWEEP_KINDS && ranks > 2 && ranks <= FEW_RANKS; kind++)
        if (sweep_reduces((sweep_kind)kind))
            add(list,
                (sweep_case){.ranks = ranks,
                             .kind = (sweep_kind)kind,
                             .dtype = RING_FLOAT32,
                             .op = RING_SUM,
                             .count = kind == SWEEP_REDUCE_SCATTER ? total / (size_t)ranks : total,
                             .in_place = kind == SWEEP_ALL_REDUCE,
                             .data = ORACLE_RANDOM,
                             .root = 1,
                             .seed = (unsigned)ranks});
}

/* ---- The full product ------------------------------------------------------------------ */

/* The k-th of all levels but the type's and the operation's. Roots change with all others. */
static row row_at(int k, int dtype, int op)
{
    row r = {.level = {[KIND] = k % SWEEP_KINDS, [DTYPE] = dtype, [OP] = op}};
    k /= SWEEP_KINDS;
    r.level[ROOT] = k + dtype + op;
    r.level[COUNT] = k % COUNTS;
    k /= COUNTS;
    r.level[IN_PLACE] = k % 2;
    r.level[SHARED] = k / 2 % 2;
    r.level[DATA] = k / 4;
    return r;
}

/* Calls that do not combine, and the largest vectors, run with one operation only. */
static void add_product(sweep_cases *list, int ranks)
{
    for (int dtype = 0; dtype < RING_DTYPE_COUNT; dtype++)
        for (int op = 0; op < OPS; op++)
            for (int k = 0; k < SWEEP_KINDS * COUNTS * 2 * 2 * 2; k++) {
                const row r = row_at(k, dtype, op);
                const bool depends_on_op = matters(OP, r.level[KIND]);
                if (ops[op] == RING_SUM || (depends_on_op && r.level[COUNT] < COUNTS - 1))
                    add(list, case_of(&r, ranks, (unsigned)k));
            }
}

sweep_cases sweep_list(sweep_mode mode, const int *ranks, int rank_count)
{
    sweep_cases list = {NULL, 0};
    for (int i = 0; i < rank_count; i++) {
        if (mode == SWEEP_FULL)
            add_product(&list, ranks[i]);
        else
            add_pairwise(&list, ranks[i], mode == SWEEP_SAMPLE);
        if (mode != SWEEP_SAMPLE)
            add_sliced(&list, ranks[i]);
    }
    return list;
}
