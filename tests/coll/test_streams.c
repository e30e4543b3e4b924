/* SPDX-License-Identifier: Apache-2.0
 * Calls that take their place in a stream of an accelerator. Usage: test_coll_streams TRANSPORT */
#include "far.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "unit_test.h"

enum { COUNT = 30011, LONG = 90000, ROUNDS = 12, RANKS_MOST = 4 };

/* ---- Vectors ---------------------------------------------------------------------- */

/* Far memory, and the vectors that a stream copies to it and from it. */
typedef struct vector {
    int32_t *far, *in, *out;
    size_t count;
} vector;

static vector vector_new(size_t count)
{
    const size_t bytes = count * sizeof(int32_t);
    return (vector){far_alloc_unknown(bytes, NULL), calloc(1, bytes), calloc(1, bytes), count};
}

static void vector_free(vector *v)
{
    far_free_unknown(v->far);
    free(v->in);
    free(v->out);
}

static int32_t element(size_t i, int rank, int round)
{
    return (int32_t)(i * 3 + (size_t)(rank * 7919 + round * 31));
}

static void put(vector *v, far_stream *s, int rank, int round)
{
    for (size_t i = 0; i < v->count; i++)
        v->in[i] = element(i, rank, round);
    far_stream_write(s, v->far, v->in, v->count * sizeof *v->in);
}

static void take(vector *v, far_stream *s)
{
    far_stream_read(s, v->out, v->far, v->count * sizeof *v->out);
}

static int expect_sum(const vector *v, int ranks, int round)
{
    for (size_t i = 0; i < v->count; i++) {
        int32_t want = 0;
        for (int r = 0; r < ranks; r++)
            want += element(i, r, round);
        EXPECT(v->out[i] == want, "element %zu of round %d: %d, not %d", i, round, (int)v->out[i],
               (int)want);
    }
    return 0;
}

/* The stream has brought the sum; the rank gives back all it has. */
static int leave_with_sum(ring_comm *comm, int ranks, far_stream *s, vector *v)
{
    far_stream_synchronize(s);
    EXPECT(expect_sum(v, ranks, 0) == 0, "the sum of %d ranks", ranks);
    EXPECT_OK(ring_barrier(comm, NULL));
    far_stream_destroy(s);
    vector_free(v);
    ring_comm_destroy(comm);
    return 0;
}

static ring_call behind(far_stream *s)
{
    ring_call call = RING_CALL_INIT;
    call.stream = s;
    return call;
}

static ring_status sum(vector *v, ring_comm *comm, const ring_call *call)
{
    return ring_all_reduce(v->far, v->far, v->count, RING_INT32, RING_SUM, comm, call);
}

/* ---- One stream --------------------------------------------------------------------- */

/* No byte is sent or written before the stream reaches the call; later work on the stream sees the
 * result. */
static int held(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    far_stream *s = far_stream_create();
    vector v = vector_new(COUNT);
    const ring_call call = behind(s);
    EXPECT_OK(ring_barrier(comm, NULL));
    const uint64_t before = harness_messages_sent(comm);
    far_stream_hold(s);
    put(&v, s, rank, 0);
    EXPECT_OK(sum(&v, comm, &call));
    EXPECT_OK(ring_barrier(comm, &call));
    EXPECT_OK(ring_all_reduce(NULL, NULL, 0, RING_INT32, RING_SUM, comm, &call));
    take(&v, s);
    usleep(5000);
    EXPECT(harness_messages_sent(comm) == before, "%d messages",
           (int)(harness_messages_sent(comm) - before));
    EXPECT(!far_stream_is_idle(s) && v.out[1] == 0, "the stream did not wait");
    far_stream_let_go(s);
    far_stream_synchronize(s);
    EXPECT(expect_sum(&v, ranks, 0) == 0, "rank %d", rank);
    EXPECT(ranks == 1 || harness_messages_sent(comm) > before, "no messages");
    far_stream_destroy(s);
    vector_free(&v);
    return 0;
}

/* The host asks for all at once, and waits at the end alone. Memory of the accelerator, and of the
 * host. */
static int in_order(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    vector v[ROUNDS];
    far_stream *s = far_stream_create();
    const ring_call call = behind(s);
    int32_t *plain = calloc(COUNT, sizeof *plain), *shared = far_alloc(COUNT * sizeof *shared);
    for (int round = 0; round < ROUNDS; round++) {
        v[round] = vector_new(COUNT);
        if (round > 0) { /* used again, in its order */
            far_free_unknown(v[round].far);
            v[round].far = v[0].far;
        }
        put(&v[round], s, rank, round);
        far_stream_delay(s, (rank + round) % 3 == 0 ? 0.001 : 0);
        if (round % 3 != 2) {
            EXPECT_OK(sum(&v[round], comm, &call));
            take(&v[round], s);
            continue;
        }
        far_stream_read(s, plain, v[round].far, COUNT * sizeof *plain);
        EXPECT_OK(ring_all_reduce(plain, shared, COUNT, RING_INT32, RING_SUM, comm, &call));
        far_stream_read(s, v[round].out, shared, COUNT * sizeof *plain);
    }
    far_stream_synchronize(s);
    for (int round = 0; round < ROUNDS; round++)
        EXPECT(expect_sum(&v[round], ranks, round) == 0, "round %d", round);
    far_stream_destroy(s);
    far_free_unknown(v[0].far);
    for (int round = 0; round < ROUNDS; round++) {
        free(v[round].in);
        free(v[round].out);
    }
    free(plain);
    far_free(shared);
    return 0;
}

static void test_a_call_takes_its_place_in_a_stream(void **state)
{
    run_joined(1, held);
    run_joined(2, held);
    run_joined(3, held);
    run_joined(1, in_order);
    run_joined(2, in_order);
    run_joined(3, in_order);
}

/* ---- Several streams ------------------------------------------------------------------ */

/* Ranks' streams come to their calls in different orders. */
static int streams_go_on_beside_each_other(int rank, int ranks, harness_board *board, void *arg)
{
    enum { STREAMS = 3 };
    ring_comm *comm[STREAMS];
    far_stream *s[STREAMS];
    vector v[STREAMS];
    EXPECT_OK(harness_join(rank, ranks, board, &comm[0]));
    for (int i = 0; i < STREAMS; i++) {
        if (i > 0)
            EXPECT_OK(ring_comm_dup(comm[0], &comm[i]));
        s[i] = far_stream_create();
        v[i] = vector_new(LONG);
    }
    for (int round = 0; round < ROUNDS / STREAMS; round++) {
        for (int k = 0; k < STREAMS; k++) {
            const int i = (k + rank + round) % STREAMS;
            const ring_call call = behind(s[i]);
            far_stream_hold(s[i]);
            put(&v[i], s[i], rank, round);
            EXPECT_OK(sum(&v[i], comm[i], &call));
            take(&v[i], s[i]);
        }
        for (int k = STREAMS; k-- > 0;)
            far_stream_let_go(s[(k + 2 * rank) % STREAMS]);
        for (int i = 0; i < STREAMS; i++) {
            far_stream_synchronize(s[i]);
            EXPECT(expect_sum(&v[i], ranks, round) == 0, "stream %d", i);
        }
    }
    for (int i = STREAMS; i-- > 0;) {
        ring_comm_destroy(comm[i]);
        far_stream_destroy(s[i]);
        vector_free(&v[i]);
    }
    return 0;
}

/* ---- Other options -------------------------------------------------------------------- */

static void count_done(void *context, ring_status status)
{
    atomic_fetch_add((_Atomic int *)context, status == RING_OK ? 1 : 100);
}

/* The stream and the event both have to be there, in any order. */
static int with_options(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    _Atomic int done = 0;
    far_stream *s = far_stream_create();
    vector v = vector_new(COUNT);
    for (int round = 0; round < 4; round++) {
        ring_call call = behind(s);
        ring_work *work = NULL;
        int over = 0;
        call.work = &work;
        call.on_done = round % 2 == 0 ? count_done : NULL;
        call.context = &done;
        EXPECT_OK(ring_event_create(&call.after));
        EXPECT_OK(ring_barrier(comm, NULL));
        const uint64_t before = harness_messages_sent(comm);
        far_stream_hold(s);
        put(&v, s, rank, round);
        EXPECT_OK(sum(&v, comm, &call));
        take(&v, s);
        if (round < 2)
            far_stream_let_go(s);
        else
            EXPECT_OK(ring_event_set(call.after, RING_OK));
        usleep(3000);
        EXPECT_OK(ring_test(&work, &over));
        EXPECT(!over && harness_messages_sent(comm) == before, "one of two gates was enough");
        if (round < 2)
            EXPECT_OK(ring_event_set(call.after, RING_OK));
        else
            far_stream_let_go(s);
        EXPECT_OK(ring_wait(&work));
        far_stream_synchronize(s);
        EXPECT(expect_sum(&v, ranks, round) == 0, "round %d", round);
        ring_event_destroy(call.after);
    }
    for (const double began = harness_now(); done < 2 && harness_is_prompt(began);)
        usleep(1000);
    EXPECT(done == 2, "%d ends were told", done);
    far_stream_destroy(s);
    vector_free(&v);
    return 0;
}

static int prepared(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    ring_prepared *kept = NULL;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    far_stream *s = far_stream_create();
    vector v = vector_new(COUNT);
    ring_call call = RING_CALL_INIT;
    call.prepared = &kept;
    EXPECT_OK(sum(&v, comm, &call));
    call = behind(s);
    for (int round = 0; round < ROUNDS; round++) {
        put(&v, s, rank, round);
        EXPECT_OK(ring_prepared_start(kept, &call));
        take(&v, s);
        far_stream_synchronize(s);
        EXPECT(expect_sum(&v, ranks, round) == 0, "round %d", round);
    }
    ring_prepared_destroy(kept);
    far_stream_destroy(s);
    vector_free(&v);
    ring_comm_destroy(comm);
    return 0;
}

static void test_other_options_mean_what_they_mean_elsewhere(void **state)
{
    run_joined(1, with_options);
    run_joined(2, with_options);
    run(3, prepared);
}

/* ---- Groups --------------------------------------------------------------------------- */

/* All pairs exchange long messages on one stream, and no call waits for another to end. Meanwhile
 * there is a call on another communicator and another stream. */
static int calls_of_a_group_share_a_place(ring_comm *comm, int rank, int ranks,
                                          harness_board *board)
{
    ring_comm *other;
    EXPECT_OK(ring_comm_dup(comm, &other));
    far_stream *s[2] = {far_stream_create(), far_stream_create()};
    const ring_call call = behind(s[0]), beside = behind(s[1]);
    vector out[RANKS_MOST], in[RANKS_MOST], v = vector_new(COUNT);
    for (int p = 0; p < ranks; p++) {
        out[p] = vector_new(LONG);
        in[p] = vector_new(LONG);
    }
    for (int round = 0; round < 3; round++) {
        far_stream_hold(s[0]);
        for (int p = 0; p < ranks; p++)
            put(&out[p], s[0], 10 * rank + p, round);
        put(&v, s[1], rank, round);
        EXPECT_OK(ring_group_start());
        for (int p = 0; p < ranks; p++) {
            EXPECT_OK(ring_send(out[p].far, LONG, RING_INT32, p, comm, &call));
            EXPECT_OK(ring_recv(in[p].far, LONG, RING_INT32, p, comm, &call));
        }
        EXPECT_OK(sum(&v, other, &beside));
        EXPECT_OK(ring_group_end());
        EXPECT(!far_stream_is_idle(s[0]), "the group waited");
        take(&v, s[1]);
        for (int p = 0; p < ranks; p++)
            take(&in[p], s[0]);
        far_stream_synchronize(s[1]);
        EXPECT(expect_sum(&v, ranks, round) == 0, "beside");
        far_stream_let_go(s[0]);
        far_stream_synchronize(s[0]);
        for (int p = 0; p < ranks; p++)
            EXPECT(in[p].out[LONG - 1] == element(LONG - 1, 10 * p + rank, round), "from %d", p);
    }
    for (int p = 0; p < ranks; p++) {
        vector_free(&out[p]);
        vector_free(&in[p]);
    }
    vector_free(&v);
    far_stream_destroy(s[0]);
    far_stream_destroy(s[1]);
    ring_comm_destroy(other);
    return 0;
}

/* ---- Refusals ------------------------------------------------------------------------- */

static int expect_refusal(ring_status got, const char *text)
{
    EXPECT(got == RING_ERR_UNSUPPORTED && harness_says(text), "%d: %s", got, ring_last_error(NULL));
    return 0;
}

static int refused(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    int32_t *elsewhere = far_alloc_elsewhere(4096), x = 0;
    far_stream *s = far_stream_create();
    ring_call call = behind((far_stream *)(void *)&x);
    EXPECT(expect_refusal(ring_barrier(comm, &call), "is not a stream of an accelerator") == 0,
           "none");
    call.stream = s;
    EXPECT(expect_refusal(ring_all_reduce(elsewhere, elsewhere, 4, RING_INT32, RING_SUM, comm,
                                          &call),
                          "memory of elsewhere") == 0,
           "two accelerators");
    EXPECT_OK(ring_group_start());
    EXPECT_OK(ring_barrier(comm, &call));
    call.stream = &x;
    EXPECT(expect_refusal(ring_barrier(comm, &call), "is not a stream of an accelerator") == 0,
           "none");
    EXPECT(expect_refusal(ring_group_end(), "is not a stream of an accelerator") == 0, "a group");
    far_stream_synchronize(s);
    EXPECT_OK(ring_barrier(comm, NULL));
    far_stream_destroy(s);
    far_free(elsewhere);
    return 0;
}

/* The host drives these calls, so no graph can keep them; the stream stays as it was. */
static int refused_in_graphs(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    far_stream *s = far_stream_create();
    ring_call call = behind(s);
    far_capture_begin(s);
    EXPECT(expect_refusal(ring_barrier(comm, &call), "a graph cannot keep such calls") == 0,
           "a call");
    EXPECT_OK(ring_group_start());
    EXPECT(expect_refusal(ring_barrier(comm, &call), "a graph cannot keep such calls") == 0,
           "a group");
    EXPECT(expect_refusal(ring_group_end(), "a graph cannot keep such calls") == 0, "a group");
    far_capture_end(s);
    EXPECT_OK(ring_barrier(comm, &call));
    far_stream_synchronize(s);
    EXPECT_OK(ring_barrier(comm, NULL)); /* nothing has taken a place */
    far_stream_destroy(s);
    return 0;
}

/* Without the thread that moves calls, somebody has to wait for them. */
static int without_thread(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    ring_work *work;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    far_stream *s = far_stream_create();
    vector v = vector_new(COUNT);
    ring_call call = behind(s);
    EXPECT(expect_refusal(ring_barrier(comm, &call), "RING_PROGRESS=none") == 0, "no handle");
    call.work = &work;
    put(&v, s, rank, 0);
    EXPECT_OK(sum(&v, comm, &call));
    take(&v, s);
    EXPECT_OK(ring_wait(&work));
    return leave_with_sum(comm, ranks, s, &v);
}

static void test_what_cannot_be_is_refused(void **state)
{
    run_joined(2, refused);
    run_joined(2, refused_in_graphs);
    setenv("RING_PROGRESS", "none", 1);
    run(1, without_thread);
    run(2, without_thread);
    unsetenv("RING_PROGRESS");
}

/* ---- Ends ----------------------------------------------------------------------------- */

/* How a communicator ends while rank 0's call waits for rank 1 and later calls are queued. */
typedef enum ending { ABORT, DEADLINE, DESTROY, DEATH, ENDINGS } ending;

static ring_status status_of(ending how)
{
    return how == DEADLINE ? RING_ERR_TIMEOUT : how == DEATH ? RING_ERR_PEER : RING_ERR_ABORTED;
}

static int end_it(int rank, ring_comm *comm, ending how)
{
    if (how == ABORT && rank == 1)
        EXPECT_OK(ring_comm_abort(comm, "to see the streams go on"));
    if (how == DEATH && rank == 1)
        raise(SIGKILL);
    return 0;
}

static int ended(int rank, int ranks, harness_board *board, void *arg)
{
    const ending how = *(const ending *)arg;
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    far_stream *s = far_stream_create(), *never = far_stream_create();
    vector v = vector_new(LONG), w = vector_new(COUNT);
    ring_call call = behind(s), waits = behind(never);
    call.timeout = how == DEADLINE ? 0.5 : 0; /* counts from the call; the next one comes before */
    put(&v, s, rank, 0);
    if (rank == 0)
        EXPECT_OK(sum(&v, comm, &call));
    take(&v, s);
    far_stream_hold(never);
    if (rank == 0)
        EXPECT_OK(sum(&w, comm, &waits));
    atomic_fetch_add(&board->counters[0], 1);
    EXPECT(harness_await(board, 0, ranks), "a rank is late");
    if (how == DESTROY && rank == 1) {
        ring_comm_destroy(comm); /* the other has unfinished calls: it learns that one left */
        comm = NULL;
    } else {
        EXPECT(end_it(rank, comm, how) == 0, "ending it");
    }
    if (how == DESTROY && rank == 0) {
        ring_comm_destroy(comm);
        comm = NULL;
    }
    far_stream_synchronize(s);
    far_stream_let_go(never);
    far_stream_synchronize(never);
    if (comm != NULL) {
        ring_status status = RING_OK;
        for (const double began = harness_now(); status == RING_OK && harness_is_prompt(began);)
            status = ring_comm_status(comm);
        EXPECT(status == status_of(how), "%s", ring_status_string(status));
        EXPECT(ring_barrier(comm, &call) == status_of(how), "%s", ring_last_error(NULL));
        far_stream_synchronize(s);
    }
    ring_comm_destroy(comm);
    far_stream_destroy(s);
    far_stream_destroy(never);
    vector_free(&v);
    vector_free(&w);
    return 0;
}

static void test_a_failure_lets_streams_go(void **state)
{
    const harness_kind kind = cases_kind();
    for (ending how = ABORT; how < ENDINGS; how++) {
        if (how == DEATH && kind == HARNESS_THREADS)
            continue;
        assert_int_equal(harness_run(kind, 2, ended, &how, NULL), how == DEATH ? 1 : 0);
    }
}

/* After a stream has passed a failed call, that call writes nothing any more. */
static int nothing_late(int rank, int ranks, harness_board *board, void *arg)
{
    const int round = *(const int *)arg;
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    far_stream *s = far_stream_create();
    vector v = vector_new(1 << 16);
    const size_t bytes = v.count * sizeof *v.out;
    const ring_call call = behind(s);
    int32_t *later = malloc(bytes);
    EXPECT(later != NULL, "no memory");
    put(&v, s, rank, 0);
    EXPECT_OK(sum(&v, comm, &call));
    take(&v, s);
    atomic_fetch_add(&board->counters[0], 1);
    EXPECT(harness_await(board, 0, ranks), "a rank is late");
    const double began = harness_now();
    while (rank == 0 && harness_messages_sent(comm) == 0 && harness_is_prompt(began))
        usleep(100);
    usleep(5000 * (unsigned)(round + 1)); /* the accelerator is at it for longer */
    if (rank == 0)
        EXPECT_OK(ring_comm_abort(comm, "to see what is still written"));
    far_stream_synchronize(s);
    usleep(30000);
    far_read(later, v.far, bytes);
    EXPECT(memcmp(later, v.out, bytes) == 0, "written after the end");
    free(later);
    ring_comm_destroy(comm);
    far_stream_destroy(s);
    vector_free(&v);
    return 0;
}

static void test_nothing_is_written_behind_a_failed_call(void **state)
{
    setenv("RING_ALGO", "direct", 1);
    far_delay(0.02);
    for (int round = 0; round < 3; round++)
        assert_int_equal(harness_run(cases_kind(), 2, nothing_late, &round, NULL), 0);
    far_delay(0);
    unsetenv("RING_ALGO");
}

/* A forked child has neither the communicator nor its streams; the parent's go on. */
static int forked(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    int end = -1;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    far_stream *s = far_stream_create();
    vector v = vector_new(COUNT);
    const ring_call call = behind(s);
    far_stream_hold(s);
    put(&v, s, rank, 0);
    EXPECT_OK(sum(&v, comm, &call));
    take(&v, s);
    const pid_t child = fork();
    if (child == 0) {
        const ring_status status = ring_barrier(comm, &call);
        ring_comm_destroy(comm);
        _exit(status == RING_ERR_USAGE ? 0 : 1);
    }
    EXPECT(waitpid(child, &end, 0) == child && end == 0, "the child ended with %d", end);
    far_stream_let_go(s);
    return leave_with_sum(comm, ranks, s, &v);
}

static void test_a_child_has_no_streams(void **state)
{
    run(2, forked);
}

/* The device of rank 1 has an error: of a fold that never ends, or while a stream has not come to
 * its call. Ranks of one process share it. */
static int broken(int rank, int ranks, harness_board *board, void *arg)
{
    const bool folds = *(const bool *)arg;
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    far_stream *s = far_stream_create();
    vector v = vector_new(LONG);
    const ring_call call = behind(s);
    far_stream_hold(s);
    EXPECT_OK(sum(&v, comm, &call));
    atomic_fetch_add(&board->counters[0], 1);
    EXPECT(harness_await(board, 0, ranks), "a rank is late");
    if (rank == 1)
        far_break("a load went wrong");
    if (folds)
        far_stream_let_go(s);
    ring_status status = RING_OK;
    for (const double began = harness_now(); status == RING_OK && harness_is_prompt(began);)
        status = ring_comm_status(comm);
    EXPECT(status == RING_ERR_SYSTEM, "%s", ring_status_string(status));
    const char *text = ring_last_error(comm);
    EXPECT(strstr(text, "the accelerator far failed: a load went wrong") != NULL, "%s", text);
    EXPECT(strstr(text, cases_kind() == HARNESS_THREADS ? "rank " : "rank 1") != NULL, "%s", text);
    EXPECT(ring_barrier(comm, &call) == RING_ERR_SYSTEM, "%s", ring_last_error(NULL));
    if (!folds)
        far_stream_let_go(s);
    far_stream_synchronize(s);
    ring_comm_destroy(comm);
    far_stream_destroy(s);
    vector_free(&v);
    return 0;
}

static void test_an_error_of_the_device_ends_the_communicator(void **state)
{
    const harness_kind kind = cases_kind();
    for (int i = 0; i < 2; i++) {
        bool folds = i == 1;
        const int failed = harness_run(kind, 2, broken, &folds, NULL);
        far_break(NULL);
        assert_int_equal(failed, 0);
    }
}

/* The deadline includes the time that the stream takes to reach the call. After it the stream
 * passes the call without waiting. */
static int a_deadline_counts_from_the_call(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    ring_status status = RING_OK;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    far_stream *s = far_stream_create();
    ring_call call = behind(s);
    call.timeout = 0.1;
    far_stream_hold(s);
    EXPECT_OK(ring_barrier(comm, &call));
    for (const double began = harness_now(); status == RING_OK && harness_is_prompt(began);)
        status = ring_comm_status(comm);
    EXPECT(status == RING_ERR_TIMEOUT, "%s", ring_status_string(status));
    const char *text = ring_last_error(comm);
    EXPECT(strstr(text, "the call's stream (ring_call.stream) has not reached it") != NULL, "%s",
           text);
    far_stream_let_go(s);
    far_stream_synchronize(s);
    ring_comm_destroy(comm);
    far_stream_destroy(s);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call_takes_its_place_in_a_stream),
        CASE_ALONE(streams_go_on_beside_each_other, 2, 3),
        cmocka_unit_test(test_other_options_mean_what_they_mean_elsewhere),
        CASE(calls_of_a_group_share_a_place, 1, 3),
        cmocka_unit_test(test_what_cannot_be_is_refused),
        cmocka_unit_test(test_a_failure_lets_streams_go),
        cmocka_unit_test(test_nothing_is_written_behind_a_failed_call),
        cmocka_unit_test(test_a_child_has_no_streams),
        cmocka_unit_test(test_an_error_of_the_device_ends_the_communicator),
        CASE_ALONE(a_deadline_counts_from_the_call, 1, 2),
    };
    cases_begin(argc, argv);
    setenv("RING_TIMEOUT", "60", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
