/* SPDX-License-Identifier: Apache-2.0
 *
 * Many calls at once: collectives and point-to-point calls of random kinds and sizes in flight
 * together, finished by ring_wait() and ring_test() in each rank's own order, buffers poisoned
 * and freed at once; then several threads and communicators in one process.
 * RING_TEST_LONG: more of them. Usage: test_coll_stress TRANSPORT */
#include "draw.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "unit_test.h"

/* ---- Random numbers: all ranks draw the same ones for calls, each its own for the rest ---- */

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static size_t draw(uint64_t *state, size_t below)
{
    *state = mix(*state);
    return *state % below;
}

/* ---- Jobs ---------------------------------------------------------------------------------- */

typedef enum job_kind {
    ALL_REDUCE,
    REDUCE_SCATTER,
    ALL_GATHER,
    BROADCAST,
    REDUCE,
    BARRIER,
    SEND, /* to the next rank … */
    RECV, /* … and from the previous one */
} job_kind;

typedef struct block {
    int32_t *data;
    size_t bytes;
    bool shared;
} block;

typedef struct job {
    job_kind kind;
    ring_op op;
    int root;
    size_t count;
    unsigned call;  /* number; inputs depend on it */
    block src, dst; /* in place, src is both */
    int32_t *in, *out;
    ring_work *work;
    bool used;
} job;

enum { ROUNDS = 60, LONG_ROUNDS = 300 };
enum { JOBS = 12, LARGEST = 300000 /* several times what a link holds */ };

typedef struct stress {
    int rank, ranks;
    ring_comm *comm;
    uint64_t common, own; /* random states */
    job jobs[JOBS];
    int free_jobs;
} stress;

static block block_new(size_t count, bool shared)
{
    block b = {.bytes = (count > 0 ? count : 1) * sizeof *b.data, .shared = shared};
    if (!shared)
        b.data = malloc(b.bytes);
    else if (ring_mem_alloc((void **)&b.data, b.bytes) != RING_OK)
        b.data = NULL;
    if (b.data == NULL)
        abort();
    memset(b.data, 0x5a, b.bytes);
    return b;
}

/* Poisons the block: a late reader gets wrong values, a late writer causes some. */
static void block_free(block *b)
{
    if (b->data == NULL)
        return;
    memset(b->data, 0xee, b->bytes);
    if (b->shared)
        ring_mem_free(b->data);
    else
        free(b->data);
    b->data = NULL;
}

static size_t in_count(const stress *s, const job *j)
{
    if (j->kind == BARRIER || j->kind == RECV)
        return 0;
    return j->kind == REDUCE_SCATTER ? j->count * (size_t)s->ranks : j->count;
}

static size_t out_count(const stress *s, const job *j)
{
    if (j->kind == BARRIER || j->kind == SEND || (j->kind == REDUCE && s->rank != j->root))
        return 0;
    return j->kind == ALL_GATHER ? j->count * (size_t)s->ranks : j->count;
}

static int32_t value(unsigned call, int rank, size_t i)
{
    return (int32_t)(mix(mix(call * 7919u + (unsigned)rank) ^ i) % 100);
}

static int32_t reduced(const stress *s, const job *j, size_t i)
{
    int32_t sum = 0, most = 0;
    for (int r = 0; r < s->ranks; r++) {
        const int32_t x = value(j->call, r, i);
        sum += x;
        most = x > most ? x : most;
    }
    return j->op == RING_MAX ? most : j->op == RING_AVG ? sum / s->ranks : sum;
}

static int32_t expected(const stress *s, const job *j, size_t i)
{
    switch (j->kind) {
    case REDUCE_SCATTER:
        return reduced(s, j, (size_t)s->rank * j->count + i);
    case ALL_GATHER:
        return value(j->call, (int)(i / j->count), i % j->count);
    case BROADCAST:
        return value(j->call, j->root, i);
    case RECV:
        return value(j->call, (s->rank + s->ranks - 1) % s->ranks, i);
    default:
        return reduced(s, j, i);
    }
}

static void place(stress *s, job *j)
{
    const size_t ins = in_count(s, j), outs = j->kind == REDUCE ? j->count : out_count(s, j);
    const bool in_place = j->kind < BARRIER && draw(&s->own, 2);
    const size_t own_block = (size_t)s->rank * j->count;
    j->src = block_new(in_place && outs > ins ? outs : ins, draw(&s->own, 2));
    if (!in_place)
        j->dst = block_new(outs, draw(&s->own, 2));
    j->in = j->src.data + (in_place && j->kind == ALL_GATHER ? own_block : 0);
    j->out = in_place ? j->src.data + (j->kind == REDUCE_SCATTER ? own_block : 0) : j->dst.data;
    for (size_t i = 0; i < ins; i++)
        j->in[i] = value(j->call, s->rank, i);
}

static ring_status start(const stress *s, job *j)
{
    ring_call call = RING_CALL_INIT;
    call.work = &j->work;
    switch (j->kind) {
    case ALL_REDUCE:
        return ring_all_reduce(j->in, j->out, j->count, RING_INT32, j->op, s->comm, &call);
    case REDUCE_SCATTER:
        return ring_reduce_scatter(j->in, j->out, j->count, RING_INT32, j->op, s->comm, &call);
    case ALL_GATHER:
        return ring_all_gather(j->in, j->out, j->count, RING_INT32, s->comm, &call);
    case BROADCAST:
        return ring_broadcast(j->in, j->out, j->count, RING_INT32, j->root, s->comm, &call);
    case REDUCE:
        return ring_reduce(j->in, j->out, j->count, RING_INT32, j->op, j->root, s->comm, &call);
    case BARRIER:
        return ring_barrier(s->comm, &call);
    case SEND:
        return ring_send(j->in, j->count, RING_INT32, (s->rank + 1) % s->ranks, s->comm, &call);
    default:
        return ring_recv(j->out, j->count, RING_INT32, (s->rank + s->ranks - 1) % s->ranks, s->comm,
                         &call);
    }
}

/* ---- In flight ----------------------------------------------------------------------------- */

/* Long vectors at random places, so that time goes into calls. */
static int finish(stress *s, job *j)
{
    const size_t count = out_count(s, j);
    for (size_t i = 0; i < count; i += (count > 2000 ? 1 + draw(&s->own, 97) : 1))
        EXPECT(j->out[i] == expected(s, j, i),
               "rank %d of %d, call %u of kind %d, count %zu, element %zu: %d, want %d", s->rank,
               s->ranks, j->call, j->kind, j->count, i, j->out[i], expected(s, j, i));
    block_free(&j->src);
    block_free(&j->dst);
    j->used = false;
    s->free_jobs++;
    return 0;
}

/* Waits for any job, or has a look at it. */
static int settle_one(stress *s)
{
    job *j = &s->jobs[draw(&s->own, JOBS)];
    int done = 1;
    if (!j->used)
        return 0;
    if (draw(&s->own, 3) == 0)
        EXPECT_OK(ring_wait(&j->work));
    else
        EXPECT_OK(ring_test(&j->work, &done));
    return done ? finish(s, j) : 0;
}

static int make_room(stress *s, int jobs)
{
    while (s->free_jobs < jobs)
        if (settle_one(s) != 0)
            return 1;
    return 0;
}

static int add_job(stress *s, const job *wanted)
{
    job *j = s->jobs;
    while (j->used)
        j++;
    *j = *wanted;
    j->used = true;
    s->free_jobs--;
    place(s, j);
    EXPECT_OK(start(s, j));
    return 0;
}

static job draw_job(stress *s, unsigned call)
{
    static const ring_op ops[] = {RING_SUM, RING_AVG, RING_MAX};
    static const size_t counts[] = {10, 1000, 20000, LARGEST, LARGEST};
    job j = {.call = call};
    j.kind = (job_kind)draw(&s->common, SEND + 1);
    j.op = ops[draw(&s->common, 3)];
    j.root = (int)draw(&s->common, (size_t)s->ranks);
    j.count = draw(&s->common, counts[draw(&s->common, 5)]);
    if (j.kind == REDUCE_SCATTER || j.kind == ALL_GATHER)
        j.count /= (size_t)s->ranks;
    return j;
}

/* A send has a receive with it: there is room for both before either is started. */
static int add_random_job(stress *s, unsigned call)
{
    job j = draw_job(s, call);
    if (make_room(s, 2) != 0 || add_job(s, &j) != 0)
        return 1;
    if (j.kind != SEND)
        return 0;
    j.kind = RECV;
    return add_job(s, &j);
}

static int random_calls(int rank, int ranks, harness_board *board, void *arg)
{
    stress s = {.rank = rank,
                .ranks = ranks,
                .common = test_seed() * 100 + (uint64_t)ranks,
                .own = test_seed() * 100000 + (uint64_t)(1000 * ranks + rank),
                .free_jobs = JOBS};
    EXPECT_OK(harness_join(rank, ranks, board, &s.comm));
    for (unsigned call = 0; call < (test_is_long() ? LONG_ROUNDS : ROUNDS); call++) {
        if (add_random_job(&s, call) != 0)
            return 1;
        if (draw(&s.own, 20) == 0)
            usleep((useconds_t)draw(&s.own, 3000));
    }
    if (make_room(&s, JOBS) != 0)
        return 1;
    ring_comm_destroy(s.comm);
    return 0;
}

static void test_random_calls_in_flight_give_what_they_give_alone(void **state)
{
    for (int ranks = 2; ranks <= 5; ranks++)
        run(ranks, random_calls);
}

/* ---- Threads ------------------------------------------------------------------------------- */

enum { COMMS = 3, TURNS = 40 };

typedef struct party {
    ring_comm *comm;
    int rank, ranks;
    pthread_t collective, exchange;
    bool failed[2];
} party;

static int reduce_often(const party *p)
{
    enum { MOST = 200000 };
    int32_t *x;
    EXPECT_OK(ring_mem_alloc((void **)&x, MOST * sizeof *x));
    for (int turn = 0; turn < TURNS; turn++) {
        const int count = 1 + turn * 79190 % MOST;
        for (int i = 0; i < count; i++)
            x[i] = p->rank + turn + i;
        EXPECT_OK(ring_all_reduce(x, x, (size_t)count, RING_INT32, RING_SUM, p->comm, NULL));
        for (int i = 0; i < count; i++)
            EXPECT(x[i] == p->ranks * (p->ranks - 1) / 2 + p->ranks * (turn + i),
                   "turn %d, element %d: %d", turn, i, x[i]);
    }
    EXPECT_OK(ring_mem_free(x));
    return 0;
}

static int exchange_often(const party *p)
{
    enum { MOST = 100000 };
    const int next = (p->rank + 1) % p->ranks, before = (p->rank + p->ranks - 1) % p->ranks;
    int32_t *out = malloc(MOST * sizeof *out), *in = malloc(MOST * sizeof *in);
    for (int turn = 0; turn < TURNS; turn++) {
        const int count = turn * 104729 % MOST;
        ring_work *sending;
        ring_call call = RING_CALL_INIT;
        call.work = &sending;
        for (int i = 0; i < count; i++)
            out[i] = p->rank * 1000 + turn + i;
        EXPECT_OK(ring_send(out, (size_t)count, RING_INT32, next, p->comm, &call));
        EXPECT_OK(ring_recv(in, (size_t)count, RING_INT32, before, p->comm, NULL));
        for (int done = 0; !done;)
            EXPECT_OK(ring_test(&sending, &done));
        for (int i = 0; i < count; i++)
            EXPECT(in[i] == before * 1000 + turn + i, "turn %d, element %d: %d", turn, i, in[i]);
    }
    free(in);
    free(out);
    return 0;
}

static void *reduce_main(void *arg)
{
    party *p = arg;
    p->failed[0] = reduce_often(p) != 0;
    return NULL;
}

static void *exchange_main(void *arg)
{
    party *p = arg;
    p->failed[1] = exchange_often(p) != 0;
    return NULL;
}

/* One more communicator of the same ranks: its id goes round in the first one. */
static ring_status join_again(const party *first, ring_comm **comm)
{
    ring_unique_id id;
    if (first->rank == 0 && ring_get_unique_id(&id) != RING_OK)
        return RING_ERR_SYSTEM;
    const ring_status status = ring_broadcast(&id, &id, sizeof id, RING_UINT8, 0, first->comm,
                                              NULL);
    return status == RING_OK ? ring_comm_init(comm, first->ranks, &id, first->rank) : status;
}

static int two_threads_on_each_of_several_communicators(int rank, int ranks, harness_board *board,
                                                        void *arg)
{
    party all[COMMS];
    int failed = 0;
    for (int i = 0; i < COMMS; i++) {
        all[i] = (party){.rank = rank, .ranks = ranks};
        EXPECT_OK(i == 0 ? harness_join(rank, ranks, board, &all[0].comm)
                         : join_again(&all[0], &all[i].comm));
    }
    for (int i = 0; i < COMMS; i++) {
        pthread_create(&all[i].collective, NULL, reduce_main, &all[i]);
        pthread_create(&all[i].exchange, NULL, exchange_main, &all[i]);
    }
    for (int i = 0; i < COMMS; i++) {
        pthread_join(all[i].collective, NULL);
        pthread_join(all[i].exchange, NULL);
        failed += all[i].failed[0] + all[i].failed[1];
    }
    for (int i = 0; i < COMMS; i++)
        ring_comm_destroy(all[i].comm);
    return failed;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_calls_in_flight_give_what_they_give_alone),
        CASE_ALONE(two_threads_on_each_of_several_communicators, 2, 3),
    };
    cases_begin(argc, argv);
    setenv("RING_TIMEOUT", "60", 1); /* a call that hangs is named before the test's time is over */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
