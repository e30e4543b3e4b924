/* SPDX-License-Identifier: Apache-2.0
 * Calls that are prepared once and made again and again. Usage: test_coll_prepared TRANSPORT */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "unit_test.h"

enum { ROUNDS = 4, RANKS_MOST = 4, COUNT = 700, LONG = 90000 };

/* Outside of the communicator. */
static void meet(harness_board *board, int round, int ranks)
{
    atomic_fetch_add(&board->counters[round], 1);
    while (atomic_load(&board->counters[round]) < ranks)
        usleep(1000);
}

/* ---- All calls ------------------------------------------------------------------------------ */

/* Buffers of one rank's calls. */
typedef struct buffers {
    int rank, ranks;
    size_t count;                                  /* elements of a block */
    int32_t *src, *dst;                            /* [ranks, count] */
    size_t counts[RANKS_MOST], displs[RANKS_MOST]; /* of the v-forms: rank r has count - r */
} buffers;

typedef ring_status a_call(const buffers *b, ring_comm *comm, const ring_call *call);

static ring_status all_reduce(const buffers *b, ring_comm *comm, const ring_call *call)
{
    return ring_all_reduce(b->src, b->dst, b->count, RING_INT32, RING_SUM, comm, call);
}

static ring_status reduce_scatter(const buffers *b, ring_comm *comm, const ring_call *call)
{
    return ring_reduce_scatter(b->src, b->dst, b->count, RING_INT32, RING_MAX, comm, call);
}

static ring_status all_gather(const buffers *b, ring_comm *comm, const ring_call *call)
{
    return ring_all_gather(b->src, b->dst, b->count, RING_INT32, comm, call);
}

static ring_status broadcast(const buffers *b, ring_comm *comm, const ring_call *call)
{
    return ring_broadcast(b->src, b->dst, b->count, RING_INT32, b->ranks - 1, comm, call);
}

static ring_status reduce(const buffers *b, ring_comm *comm, const ring_call *call)
{
    return ring_reduce(b->src, b->dst, b->count, RING_INT32, RING_SUM, b->ranks - 1, comm, call);
}

static ring_status scan(const buffers *b, ring_comm *comm, const ring_call *call)
{
    return ring_scan(b->src, b->dst, b->count, RING_INT32, RING_SUM, comm, call);
}

static ring_status exscan(const buffers *b, ring_comm *comm, const ring_call *call)
{
    return ring_exscan(b->src, b->dst, b->count, RING_INT32, RING_MAX, comm, call);
}

static ring_status gather(const buffers *b, ring_comm *comm, const ring_call *call)
{
    return ring_gather(b->src, b->dst, b->count, RING_INT32, 0, comm, call);
}

static ring_status scatter(const buffers *b, ring_comm *comm, const ring_call *call)
{
    return ring_scatter(b->src, b->dst, b->count, RING_INT32, 0, comm, call);
}

static ring_status all_to_all(const buffers *b, ring_comm *comm, const ring_call *call)
{
    return ring_all_to_all(b->src, b->dst, b->count, RING_INT32, comm, call);
}

/* Round to the right: sends go ahead, for they are short. */
static ring_status send(const buffers *b, ring_comm *comm, const ring_call *call)
{
    return ring_send(b->src, COUNT, RING_INT32, (b->rank + 1) % b->ranks, comm, call);
}

static ring_status recv(const buffers *b, ring_comm *comm, const ring_call *call)
{
    return ring_recv(b->dst, COUNT, RING_INT32, (b->rank + b->ranks - 1) % b->ranks, comm, call);
}

static ring_status barrier(const buffers *b, ring_comm *comm, const ring_call *call)
{
    return ring_barrier(comm, call);
}

static ring_status all_gather_v(const buffers *b, ring_comm *comm, const ring_call *call)
{
    return ring_all_gather_v(b->src, b->dst, b->counts, b->displs, RING_INT32, comm, call);
}

static ring_status reduce_scatter_v(const buffers *b, ring_comm *comm, const ring_call *call)
{
    return ring_reduce_scatter_v(b->src, b->counts, b->displs, b->dst, RING_INT32, RING_SUM, comm,
                                 call);
}

static ring_status gather_v(const buffers *b, ring_comm *comm, const ring_call *call)
{
    return ring_gather_v(b->src, b->counts[b->rank], b->dst, b->counts, b->displs, RING_INT32, 0,
                         comm, call);
}

static ring_status scatter_v(const buffers *b, ring_comm *comm, const ring_call *call)
{
    return ring_scatter_v(b->src, b->counts, b->displs, b->dst, b->counts[b->rank], RING_INT32, 0,
                          comm, call);
}

static a_call *const calls[] = {all_reduce,       reduce_scatter, all_gather, broadcast, reduce,
                                gather,           scatter,        all_to_all, send,      recv,
                                barrier,          all_gather_v,   gather_v,   scatter_v, all_reduce,
                                reduce_scatter_v, scan,           exscan};
enum { CALLS = sizeof calls / sizeof calls[0] };

static void fill(buffers *b, int round)
{
    const size_t all = b->count * (size_t)b->ranks;
    for (size_t i = 0; i < all; i++)
        b->src[i] = (int32_t)((size_t)(b->rank * 7919 + round * 31) + i * 3);
    memset(b->dst, 0xff, all * sizeof *b->dst);
}

static void make_buffers(buffers *b, int rank, int ranks, size_t count)
{
    const size_t bytes = count * (size_t)ranks * sizeof *b->src;
    *b = (buffers){.rank = rank, .ranks = ranks, .count = count};
    b->src = malloc(bytes);
    b->dst = malloc(bytes);
    for (int r = 0; r < ranks; r++) {
        b->counts[r] = count - (size_t)r;
        b->displs[r] = count * (size_t)r;
    }
}

static void free_buffers(buffers *b)
{
    free(b->src);
    free(b->dst);
}

static int prepare_all(buffers *b, ring_comm *comm, ring_prepared **prepared)
{
    buffers once = *b; /* its arrays of counts are gone when the calls start */
    for (int c = 0; c < CALLS; c++) {
        ring_call call = RING_CALL_INIT;
        call.prepared = &prepared[c];
        EXPECT_OK(calls[c](&once, comm, &call));
        EXPECT(prepared[c] != NULL, "call %d was not prepared", c);
    }
    memset(&once, 0xff, sizeof once);
    return 0;
}

/* Plain calls and prepared ones give equal results. Ranks make the plain ones alternately, which
 * the others do not notice. */
static int compare(const buffers *b, ring_comm *comm, ring_prepared **prepared, int round)
{
    const size_t bytes = b->count * (size_t)b->ranks * sizeof *b->dst;
    int32_t *plain = malloc(bytes);
    for (int c = 0; c < CALLS; c++) {
        memset(b->dst, 0xff, bytes);
        EXPECT_OK(calls[c](b, comm, NULL));
        memcpy(plain, b->dst, bytes);
        memset(b->dst, 0xff, bytes);
        if ((b->rank + round) % 3 == 0)
            EXPECT_OK(calls[c](b, comm, NULL));
        else
            EXPECT_OK(ring_prepared_start(prepared[c], NULL));
        EXPECT(memcmp(plain, b->dst, bytes) == 0, "call %d of round %d", c, round);
    }
    free(plain);
    return 0;
}

/* More calls than a communicator keeps programs of. */
static int call_many(ring_comm *comm)
{
    static _Thread_local int32_t x[400];
    for (size_t i = 1; i <= 400; i++)
        EXPECT_OK(ring_all_reduce(x, x, i, RING_INT32, RING_SUM, comm, NULL));
    return 0;
}

static int start_often(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    static const size_t counts[] = {COUNT, 40000};
    ring_comm_info before = {.size = sizeof before}, after = {.size = sizeof after};
    for (size_t k = 0; k < 2; k++) {
        buffers b;
        ring_prepared *prepared[CALLS];
        make_buffers(&b, rank, ranks, counts[k]);
        EXPECT(prepare_all(&b, comm, prepared) == 0, "preparing");
        EXPECT(call_many(comm) == 0, "other calls");
        EXPECT_OK(ring_comm_get_info(comm, &before));
        for (int round = 0; round < ROUNDS; round++) {
            fill(&b, round);
            EXPECT(compare(&b, comm, prepared, round) == 0, "count %zu", counts[k]);
        }
        EXPECT_OK(ring_comm_get_info(comm, &after));
        EXPECT(after.lowered == before.lowered, "%d programs were lowered again",
               (int)(after.lowered - before.lowered));
        for (int c = 0; c < CALLS; c++)
            ring_prepared_destroy(prepared[c]);
        free_buffers(&b);
    }
    return 0;
}

static void test_prepared_calls_are_the_calls(void **state)
{
    run_joined(2, start_often);
    run_joined(3, start_often);
    run_joined(RANKS_MOST, start_often);
}

/* ---- Options and groups ---------------------------------------------------------------------- */

static void count_done(void *context, ring_status status)
{
    atomic_fetch_add((_Atomic int *)context, status == RING_OK ? 1 : 100);
}

static int with_options(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    enum { STARTS = 5 };
    ring_prepared *prepared[STARTS];
    ring_work *works[STARTS];
    int32_t(*x)[LONG] = calloc(STARTS, sizeof *x);
    _Atomic int done = 0;
    for (int i = 0; i < STARTS; i++) {
        ring_call call = RING_CALL_INIT;
        call.prepared = &prepared[i];
        x[i][LONG - 1] = rank + i;
        EXPECT_OK(ring_all_reduce(x[i], x[i], LONG, RING_INT32, RING_SUM, comm, &call));
    }
    for (int i = 0; i < STARTS; i++) {
        ring_call call = RING_CALL_INIT;
        call.work = &works[i];
        call.on_done = count_done;
        call.context = &done;
        EXPECT_OK(ring_prepared_start(prepared[i], &call));
        ring_prepared_destroy(prepared[i]); /* started calls continue */
    }
    EXPECT_OK(ring_wait_all(works, STARTS));
    for (int i = 0; i < STARTS; i++)
        EXPECT(x[i][LONG - 1] == ranks * (ranks - 1) / 2 + i * ranks, "start %d", i);
    for (const double end = harness_now() + 10; done < STARTS && harness_now() < end;)
        usleep(1000);
    EXPECT(done == STARTS, "%d ends were told", done);
    free(x);
    return 0;
}

/* Long ones, which would wait for each other one by one. */
static int in_a_group(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    ring_prepared *send_to[RANKS_MOST], *recv_from[RANKS_MOST], *none;
    int32_t(*out)[LONG] = calloc(RANKS_MOST, sizeof *out);
    int32_t(*in)[LONG] = calloc(RANKS_MOST, sizeof *in);
    EXPECT_OK(ring_group_start());
    for (int p = 0; p < ranks; p++) { /* preparing is no call of the group */
        ring_call call = RING_CALL_INIT;
        call.prepared = &send_to[p];
        EXPECT_OK(ring_send(out[p], LONG, RING_INT32, p, comm, &call));
        call.prepared = &recv_from[p];
        EXPECT_OK(ring_recv(in[p], LONG, RING_INT32, p, comm, &call));
        call.prepared = &none;
        EXPECT(ring_send(out[p], 1, RING_INT32, ranks, comm, &call) == RING_ERR_ARGUMENT, "peer");
    }
    EXPECT_OK(ring_group_end());
    for (int round = 0; round < ROUNDS; round++) {
        for (int p = 0; p < ranks; p++)
            out[p][LONG - 1] = rank * 100 + p * 10 + round;
        EXPECT_OK(ring_group_start());
        for (int p = 0; p < ranks; p++)
            EXPECT_OK(ring_prepared_start(send_to[(p + rank) % ranks], NULL));
        for (int p = 0; p < ranks; p++)
            EXPECT_OK(ring_prepared_start(recv_from[p], NULL));
        EXPECT_OK(ring_group_end());
        for (int p = 0; p < ranks; p++)
            EXPECT(in[p][LONG - 1] == p * 100 + rank * 10 + round, "from %d: %d", p,
                   (int)in[p][LONG - 1]);
    }
    for (int p = 0; p < ranks; p++) {
        ring_prepared_destroy(send_to[p]);
        ring_prepared_destroy(recv_from[p]);
    }
    free(out);
    free(in);
    return 0;
}

static void test_options_and_groups_of_starts(void **state)
{
    run_joined(2, with_options);
    run_joined(3, with_options);
    run_joined(1, in_a_group);
    run_joined(3, in_a_group);
}

/* ---- Wrong use ------------------------------------------------------------------------------- */

static int expect_refusal(ring_status got, ring_status wanted, const char *text)
{
    EXPECT(got == wanted, "%d: %s", got, ring_last_error(NULL));
    EXPECT(strstr(ring_last_error(NULL), text) != NULL, "%s", ring_last_error(NULL));
    return 0;
}

/* On one rank alone: nobody waits for a call that was not prepared. */
static int prepare_wrongly(ring_comm *comm)
{
    int32_t x[4] = {0};
    ring_work *work = NULL;
    ring_prepared *prepared = (ring_prepared *)(uintptr_t)1;
    ring_call call = RING_CALL_INIT;
    call.prepared = &prepared;
    EXPECT(expect_refusal(ring_all_reduce(x, x + 1, 2, RING_INT32, RING_SUM, comm, &call),
                          RING_ERR_ARGUMENT, "overlap") == 0,
           "overlap");
    EXPECT(prepared == NULL, "a call that was refused");
    call.work = &work;
    EXPECT(expect_refusal(ring_all_reduce(x, x, 4, RING_INT32, RING_SUM, comm, &call),
                          RING_ERR_ARGUMENT, "ring_prepared_start()") == 0,
           "options");
    EXPECT(expect_refusal(ring_barrier(NULL, &call), RING_ERR_ARGUMENT, "comm is NULL") == 0,
           "no communicator");
    EXPECT(expect_refusal(ring_prepared_start(NULL, NULL), RING_ERR_ARGUMENT, "is NULL") == 0,
           "NULL");
    EXPECT(prepared == NULL && work == NULL, "something was made");
    ring_prepared_destroy(NULL);
    return 0;
}

static int misuse(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    ring_comm *other;
    int32_t x = rank;
    ring_prepared *prepared, *nested = NULL;
    ring_call call = RING_CALL_INIT, wrong = RING_CALL_INIT;
    if (rank == 0)
        EXPECT(prepare_wrongly(comm) == 0, "preparing");
    EXPECT_OK(ring_comm_dup(comm, &other));
    call.prepared = &prepared;
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, other, &call));
    wrong.prepared = &nested; /* refused alike by all ranks: it has taken its place */
    EXPECT(expect_refusal(ring_prepared_start(prepared, &wrong), RING_ERR_ARGUMENT, "already") == 0,
           "prepared twice");
    EXPECT_OK(ring_prepared_start(prepared, NULL));
    EXPECT(x == ranks * (ranks - 1) / 2, "%d", (int)x);
    ring_comm_destroy(other);
    EXPECT(expect_refusal(ring_prepared_start(prepared, NULL), RING_ERR_USAGE, "destroyed") == 0,
           "no communicator");
    ring_prepared_destroy(prepared);
    EXPECT_OK(ring_barrier(comm, NULL));
    return 0;
}

static int started_by_one(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    int32_t x = 0;
    ring_prepared *prepared;
    ring_call call = RING_CALL_INIT;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    call.prepared = &prepared;
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, &call));
    const ring_status status = rank == 0
                                   ? ring_prepared_start(prepared, NULL)
                                   : ring_all_reduce(&x, &x, 1, RING_INT32, RING_MAX, comm, NULL);
    EXPECT(status == RING_ERR_MISMATCH, "%d: %s", status, ring_last_error(NULL));
    EXPECT(expect_refusal(ring_prepared_start(prepared, NULL), RING_ERR_MISMATCH, "max") == 0,
           "a communicator that has failed");
    meet(board, 0, ranks);
    ring_comm_destroy(comm);
    ring_prepared_destroy(prepared); /* also after its communicator */
    return 0;
}

static int in_a_child(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    int32_t x = 0;
    ring_prepared *prepared;
    ring_call call = RING_CALL_INIT;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    call.prepared = &prepared;
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, &call));
    const pid_t child = fork();
    if (child == 0) {
        const ring_status status = ring_prepared_start(prepared, NULL);
        ring_prepared_destroy(prepared);
        _exit(status == RING_ERR_USAGE ? 0 : 1);
    }
    int end = -1;
    EXPECT(waitpid(child, &end, 0) == child && end == 0, "the child ended with %d", end);
    EXPECT_OK(ring_prepared_start(prepared, NULL));
    ring_prepared_destroy(prepared);
    ring_comm_destroy(comm);
    return 0;
}

static void test_wrong_use_is_told(void **state)
{
    run_joined(2, misuse);
    run(2, started_by_one);
    run(2, in_a_child);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prepared_calls_are_the_calls),
        cmocka_unit_test(test_options_and_groups_of_starts),
        cmocka_unit_test(test_wrong_use_is_told),
    };
    cases_begin(argc, argv);
    setenv("RING_TIMEOUT", "20", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
