/* SPDX-License-Identifier: Apache-2.0
 * Handles of calls, several communicators in one process, events before and after a call.
 * Usage: test_coll_handles TRANSPORT */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "unit_test.h"

static ring_call with_handle(ring_work **work)
{
    ring_call call = RING_CALL_INIT;
    call.work = work;
    return call;
}

/* A second communicator of the same ranks: the id goes over the first. */
static ring_status join_second(ring_comm *first, ring_comm **second)
{
    ring_unique_id id = {{0}};
    const int rank = ring_comm_rank(first), ranks = ring_comm_size(first);
    ring_status status = rank == 0 ? ring_get_unique_id(&id) : RING_OK;
    if (status == RING_OK)
        status = ring_broadcast(&id, &id, sizeof id, RING_UINT8, 0, first, NULL);
    return status == RING_OK ? ring_comm_init(second, ranks, &id, rank) : status;
}

/* ---- Handles ------------------------------------------------------------------------------ */

/* The habit of MPI programs: test until done, then wait for all. A copy of an ended handle is
 * refused, and never means a later call. */
static int a_handle_that_has_ended_is_refused(ring_comm *comm, int rank, int ranks,
                                              harness_board *board)
{
    enum { TIMES = 200 };
    for (int i = 0; i < TIMES; i++) {
        ring_work *works[2], *copy;
        float x = 1, y = 2;
        int done = 0;
        ring_call call = with_handle(&works[0]);
        EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, comm, &call));
        copy = works[0];
        while (!done)
            EXPECT_OK(ring_test(&works[0], &done));
        EXPECT(works[0] == NULL && x == (float)ranks, "%g", (double)x);
        call.work = &works[1];
        EXPECT_OK(ring_all_reduce(&y, &y, 1, RING_FLOAT32, RING_SUM, comm, &call));
        EXPECT(ring_wait(&copy) == RING_ERR_USAGE, "an ended handle was waited for");
        EXPECT(strstr(ring_last_error(NULL), "has ended") != NULL, "%s", ring_last_error(NULL));
        EXPECT(ring_test(&copy, &done) == RING_ERR_USAGE, "an ended handle was tested");
        EXPECT_OK(ring_wait_all(works, 2));
        EXPECT(works[1] == NULL && y == 2 * (float)ranks, "%g", (double)y);
    }
    return 0;
}

/* Rank 1 sends in the other order, and the second message only when told. */
static int waiting_for_any_for_all_and_for_a_while(ring_comm *comm, int rank, int ranks,
                                                   harness_board *board)
{
    int32_t x[2] = {10, 20};
    size_t index;
    int done;
    if (rank == 0) {
        ring_work *works[3] = {NULL, NULL, NULL};
        for (int i = 0; i < 2; i++) {
            ring_call call = with_handle(&works[i]);
            EXPECT_OK(ring_recv(&x[i], 1, RING_INT32, 1 + i, comm, &call));
        }
        EXPECT_OK(ring_wait_any(works, 3, &index));
        EXPECT(index == 1 && x[1] == 200 && works[1] == NULL, "%zu, %d", index, (int)x[1]);
        EXPECT(ring_wait_for(&works[0], 0.05) == RING_IN_PROGRESS && works[0] != NULL, "waited");
        EXPECT_OK(ring_test_all(works, 3, &done));
        EXPECT(!done && works[0] != NULL, "done %d", done);
        board->counters[1] = 1;
        while (!done)
            EXPECT_OK(ring_test_all(works, 3, &done));
        EXPECT(x[0] == 100 && works[0] == NULL, "%d", (int)x[0]);
        EXPECT_OK(ring_wait_any(works, 3, &index));
        EXPECT(index == 3, "%zu", index);
    } else {
        const int32_t mine = 100 * rank;
        while (rank == 1 && board->counters[1] == 0)
            usleep(1000);
        EXPECT_OK(ring_send(&mine, 1, RING_INT32, 0, comm, NULL));
    }
    return 0;
}

/* The struct may be smaller or larger than the library's. */
static int options_of_other_versions_are_accepted(ring_comm *comm, int rank, int ranks,
                                                  harness_board *board)
{
    struct {
        ring_call call;
        char later[64];
    } large = {.call = RING_CALL_INIT};
    float x = 1;
    memset(large.later, 0x55, sizeof large.later);
    large.call.size = sizeof large;
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, comm, &large.call));
    for (size_t size = sizeof(size_t); size < sizeof(ring_call); size += sizeof(void *)) {
        ring_call small;
        memset(&small, 0x55, sizeof small); /* bytes beyond `size` are not read */
        memset(&small, 0, size);
        small.size = size;
        EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_MAX, comm, &small));
    }
    EXPECT(x == (float)ranks, "%g", (double)x);
    large.call.size = 0;
    EXPECT(ring_barrier(comm, &large.call) == RING_ERR_ARGUMENT, "size 0");
    return 0;
}

/* ---- Calls that nobody waits for ----------------------------------------------- */

/* Rank 0 waits on B while rank 1 waits on A, for a call that rank 0 has only started. */
static int other_order(ring_comm *a, ring_comm *b, float *x, size_t count, int rank)
{
    ring_work *on_a, *on_b;
    ring_call call_a = with_handle(&on_a), call_b = with_handle(&on_b);
    EXPECT_OK(ring_all_reduce(x, x, count, RING_FLOAT32, RING_MAX, a, &call_a));
    EXPECT_OK(ring_all_reduce(x + count, x + count, count, RING_FLOAT32, RING_MAX, b, &call_b));
    EXPECT_OK(ring_wait(rank == 0 ? &on_b : &on_a));
    EXPECT_OK(ring_wait(rank == 0 ? &on_a : &on_b));
    EXPECT_OK(ring_all_reduce(x, x, count, RING_FLOAT32, RING_MAX, a, &call_a));
    if (rank == 0)
        EXPECT_OK(ring_barrier(b, NULL));
    EXPECT_OK(ring_wait(&on_a));
    if (rank != 0)
        EXPECT_OK(ring_barrier(b, NULL));
    return 0;
}

static int communicators_may_be_waited_for_in_any_order(int rank, int ranks, harness_board *board,
                                                        void *arg)
{
    enum { TIMES = 100, MANY = 1 << 20 };
    ring_comm *a, *b;
    float *x = malloc(2 * MANY * sizeof *x);
    EXPECT_OK(harness_join(rank, ranks, board, &a));
    EXPECT_OK(join_second(a, &b));
    for (int i = 0; i < 2 * MANY; i++)
        x[i] = (float)(rank + i % 7);
    for (int i = 0; i < TIMES; i++)
        EXPECT(other_order(a, b, x, i % 20 == 0 ? MANY : 1, rank) == 0, "round %d", i);
    for (int i = 0; i < 2 * MANY; i++)
        EXPECT(x[i] == (float)(ranks - 1 + i % 7), "element %d is %g", i, (double)x[i]);
    ring_comm_destroy(b);
    ring_comm_destroy(a);
    free(x);
    return 0;
}

/* A call that was started ends while its caller computes; its deadline is no matter then. */
static int a_deadline_does_not_run_out_while_callers_compute(int rank, int ranks,
                                                             harness_board *board, void *arg)
{
    enum { COUNT = 1 << 16 };
    ring_comm *comm;
    ring_work *work;
    static float x[HARNESS_MAX_RANKS][COUNT];
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    ring_call call = with_handle(&work);
    call.timeout = 1;
    x[rank][0] = (float)rank;
    EXPECT_OK(ring_all_reduce(x[rank], x[rank], COUNT, RING_FLOAT32, RING_SUM, comm, &call));
    for (const double end = harness_now() + 2; harness_now() < end;)
        continue;
    EXPECT_OK(ring_wait(&work));
    EXPECT(x[rank][0] == (float)(ranks * (ranks - 1) / 2), "%g", (double)x[rank][0]);
    ring_comm_destroy(comm);
    return 0;
}

/* Small sends return without their receiver. */
static int a_thousand_sends_return_without_a_receiver(ring_comm *comm, int rank, int ranks,
                                                      harness_board *board)
{
    enum { SENDS = 1000 };
    for (int64_t i = 0; i < SENDS && rank == 0; i++)
        EXPECT_OK(ring_send(&i, 1, RING_INT64, 1, comm, NULL));
    board->counters[2] += rank == 0;
    while (board->counters[2] == 0)
        usleep(1000);
    for (int64_t i = 0, x; i < SENDS && rank == 1; i++) {
        EXPECT_OK(ring_recv(&x, 1, RING_INT64, 0, comm, NULL));
        EXPECT(x == i, "message %d is %d", (int)i, (int)x);
    }
    return 0;
}

/* ---- Settings of one communicator ---------------------------------------------- */

static int settings_may_be_those_of_one_communicator(int rank, int ranks, harness_board *board,
                                                     void *arg)
{
    static const char *const chosen[] = {"RING_ALGO=chain", "RING_TIMEOUT=0.3", NULL};
    static const char *const wrong[] = {"RING_TIMEOUT=soon", NULL};
    static const char *const unknown[] = {"RING_ALGOS=ring", NULL};
    ring_config config = RING_CONFIG_INIT;
    ring_comm_info info = {.size = sizeof info};
    ring_comm *first, *comm;
    ring_unique_id id = {{0}};
    float x = 1;
    EXPECT_OK(harness_join(rank, ranks, board, &first));
    config.settings = wrong;
    EXPECT(ring_comm_init_config(&comm, 1, &id, 0, &config) == RING_ERR_CONFIG &&
               strstr(ring_last_error(NULL), "soon") != NULL,
           "%s", ring_last_error(NULL));
    config.settings = unknown;
    EXPECT(ring_comm_init_config(&comm, 1, &id, 0, &config) == RING_ERR_CONFIG &&
               strstr(ring_last_error(NULL), "RING_ALGO?") != NULL,
           "%s", ring_last_error(NULL));
    config.settings = chosen;
    if (rank == 0)
        EXPECT_OK(ring_get_unique_id(&id));
    EXPECT_OK(ring_broadcast(&id, &id, sizeof id, RING_UINT8, 0, first, NULL));
    EXPECT_OK(ring_comm_init_config(&comm, ranks, &id, rank, &config));
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, comm, NULL));
    EXPECT_OK(ring_comm_get_info(comm, &info));
    EXPECT(strcmp(info.algorithm, "chain") == 0 && x == (float)ranks, "%s", info.algorithm);
    ring_comm_destroy(comm);
    ring_comm_destroy(first);
    return 0;
}

/* ---- Refused calls --------------------------------------------------------------------------- */

/* One rank's argument is wrong: it goes on computing, and the others learn why they wait. */
static int a_refused_call_is_known_to_those_who_made_it(int rank, int ranks, harness_board *board,
                                                        void *arg)
{
    ring_comm *comm;
    float x = 1;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_barrier(comm, NULL));
    for (board->counters[4]++; board->counters[4] < ranks;)
        usleep(1000);
    const double began = harness_now();
    if (rank == 1) {
        EXPECT(ring_all_reduce(&x, NULL, 1, RING_FLOAT32, RING_SUM, comm, NULL) ==
                   RING_ERR_ARGUMENT,
               "%s", ring_last_error(NULL));
        while (board->counters[9] < ranks - 1 && harness_is_prompt(began))
            continue; /* computes until the others know */
        EXPECT(ring_barrier(comm, NULL) == RING_ERR_MISMATCH, "%s", ring_last_error(comm));
    } else {
        const ring_status status = ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, comm, NULL);
        board->counters[9]++;
        EXPECT(status == RING_ERR_MISMATCH && harness_is_prompt(began), "%s after %.1f s: %s",
               ring_status_string(status), harness_now() - began, ring_last_error(comm));
    }
    EXPECT(strstr(ring_last_error(comm), "rank 1") != NULL &&
               strstr(ring_last_error(comm), "dst is NULL") != NULL,
           "%s", ring_last_error(comm));
    ring_comm_destroy(comm);
    return 0;
}

static int calls_that_all_refuse_do_no_harm(ring_comm *comm, int rank, int ranks,
                                            harness_board *board)
{
    float x;
    for (int i = 0; i < 100; i++) {
        x = 1;
        EXPECT(ring_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, ranks + 5, comm, NULL) ==
                   RING_ERR_ARGUMENT,
               "%s", ring_last_error(NULL));
        EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, comm, NULL));
        EXPECT(x == (float)ranks, "%g", (double)x);
    }
    usleep(100000);
    EXPECT_OK(ring_barrier(comm, NULL));
    return 0;
}

static int a_refused_send_ends_its_recv(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    float x = 1;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const double began = harness_now();
    if (rank == 0) {
        EXPECT(ring_send(NULL, 1, RING_FLOAT32, 1, comm, NULL) == RING_ERR_ARGUMENT, "sent");
        while (board->counters[9] < ranks - 1 && harness_is_prompt(began))
            continue;
    } else {
        const ring_status status = ring_recv(&x, 1, RING_FLOAT32, 0, comm, NULL);
        board->counters[9]++;
        EXPECT(status == RING_ERR_MISMATCH && harness_is_prompt(began), "%s",
               ring_last_error(comm));
        EXPECT(strstr(ring_last_error(comm), "src is NULL") != NULL, "%s", ring_last_error(comm));
    }
    ring_comm_destroy(comm);
    return 0;
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* A stream as a call sees it: an event before it, a callback after it. */
typedef struct fake_stream {
    ring_event *ready;
    _Atomic int ended;
    _Atomic int status;
} fake_stream;

static void on_done(void *context, ring_status status)
{
    fake_stream *s = context;
    s->status = (int)status;
    s->ended++;
}

static ring_call behind(fake_stream *s)
{
    ring_call call = RING_CALL_INIT;
    call.after = s->ready;
    call.on_done = on_done;
    call.context = s;
    return call;
}

static int a_call_behind_an_event_starts_when_it_is_set(int rank, int ranks, harness_board *board,
                                                        void *arg)
{
    ring_comm *comm;
    fake_stream stream = {0};
    float x = 1, y = 1;
    ring_comm_info before = {.size = sizeof before}, after = {.size = sizeof after};
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_event_create(&stream.ready));
    EXPECT_OK(ring_comm_get_info(comm, &before));
    ring_call call = behind(&stream);
    call.timeout = 0.2; /* counts from the event */
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, comm, &call));
    usleep(400000);
    EXPECT_OK(ring_comm_get_info(comm, &after));
    EXPECT(before.messages_sent == after.messages_sent && stream.ended == 0, "it started");
    x = 2; /* nothing was read yet */
    EXPECT_OK(ring_event_set(stream.ready, RING_OK));
    EXPECT(ring_event_set(stream.ready, RING_OK) == RING_ERR_USAGE, "set twice");
    EXPECT_OK(ring_all_reduce(&y, &y, 1, RING_FLOAT32, RING_SUM, comm, NULL));
    for (const double end = harness_now() + 5; stream.ended == 0 && harness_now() < end;)
        usleep(1000);
    EXPECT(stream.ended == 1 && stream.status == RING_OK, "ended %d", stream.ended);
    EXPECT(x == 2 * (float)ranks && y == (float)ranks, "%g %g", (double)x, (double)y);
    ring_event_destroy(stream.ready);
    ring_comm_destroy(comm);
    return 0;
}

/* A wait for an event that is not set has a time-out of its own, and the call goes on. */
static int a_closed_gate_is_no_failure_and_a_failed_one_is(int rank, int ranks,
                                                           harness_board *board, void *arg)
{
    ring_comm *comm;
    ring_work *work;
    ring_event *event;
    int done;
    float x = 1;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_event_create(&event));
    ring_call call = with_handle(&work);
    call.after = event;
    call.timeout = 0.3;
    const double began = harness_now();
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, comm, &call));
    EXPECT_OK(ring_test(&work, &done));
    EXPECT(!done, "the call did not wait for its event");
    EXPECT(ring_wait(&work) == RING_IN_PROGRESS && work != NULL, "%s", ring_last_error(comm));
    EXPECT(harness_is_prompt(began), "after %.1f s", harness_now() - began);
    EXPECT_OK(ring_comm_status(comm));
    for (board->counters[5]++; board->counters[5] < ranks;)
        usleep(1000);
    EXPECT_OK(ring_event_set(event, RING_OK));
    EXPECT_OK(ring_wait(&work));
    EXPECT(x == (float)ranks, "%g", (double)x);
    call.after = NULL;
    ring_event_destroy(event);
    EXPECT_OK(ring_event_create(&event));
    call.after = event;
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, comm, &call));
    for (board->counters[3]++; board->counters[3] < ranks;)
        usleep(1000);
    EXPECT_OK(ring_event_set(event, RING_ERR_SYSTEM));
    EXPECT(ring_wait(&work) == RING_ERR_SYSTEM, "%s", ring_last_error(comm));
    EXPECT(strstr(ring_last_error(comm), "after") != NULL, "%s", ring_last_error(comm));
    ring_event_destroy(event);
    ring_comm_destroy(comm);
    return 0;
}

static int waiting_for_any_of_closed_gates_ends(ring_comm *comm, int rank, int ranks,
                                                harness_board *board)
{
    enum { GATES = 2 };
    ring_event *event;
    ring_work *works[GATES + 1] = {NULL};
    ring_call call = RING_CALL_INIT;
    float numbers[GATES] = {1, 2};
    size_t index = 0;
    EXPECT_OK(ring_event_create(&event));
    call.after = event;
    call.timeout = 0.3;
    for (int i = 0; i < GATES; i++) {
        call.work = &works[i];
        EXPECT_OK(
            ring_all_reduce(&numbers[i], &numbers[i], 1, RING_FLOAT32, RING_SUM, comm, &call));
    }
    const double began = harness_now();
    EXPECT(ring_wait_any(works, GATES + 1, &index) == RING_IN_PROGRESS, "%s",
           ring_last_error(NULL));
    const double took = harness_now() - began;
    EXPECT(index == GATES + 1 && works[0] != NULL && works[1] != NULL, "index %zu", index);
    EXPECT(took > 0.25 && harness_is_prompt(began), "%.2f s", took);
    for (board->counters[6]++; board->counters[6] < ranks;)
        usleep(1000);
    EXPECT_OK(ring_event_set(event, RING_OK));
    EXPECT_OK(ring_wait_any(works, GATES + 1, &index));
    EXPECT_OK(ring_wait_all(works, GATES + 1));
    EXPECT(numbers[0] == (float)ranks && numbers[1] == 2 * (float)ranks, "wrong");
    ring_event_destroy(event);
    return 0;
}

/* A callback may start the next call: a chain of them. */
typedef struct chain {
    ring_comm *comm;
    int32_t x;
    _Atomic int left, failed;
} chain;

static void next_link(void *context, ring_status status)
{
    chain *c = context;
    ring_call call = RING_CALL_INIT;
    call.on_done = next_link;
    call.context = c;
    if (status != RING_OK || c->failed)
        c->failed = 1;
    else if (--c->left > 0 &&
             ring_all_reduce(&c->x, &c->x, 1, RING_INT32, RING_MAX, c->comm, &call) != RING_OK)
        c->failed = 1;
}

static int callbacks_may_start_calls(int rank, int ranks, harness_board *board, void *arg)
{
    chain c = {.left = 101, .x = rank};
    EXPECT_OK(harness_join(rank, ranks, board, &c.comm));
    next_link(&c, RING_OK);
    for (const double end = harness_now() + 20; c.left > 0 && !c.failed && harness_now() < end;)
        usleep(1000);
    EXPECT(c.left == 0 && !c.failed && c.x == ranks - 1, "left %d, x %d", c.left, (int)c.x);
    EXPECT_OK(ring_barrier(c.comm, NULL));
    ring_comm_destroy(c.comm);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(a_handle_that_has_ended_is_refused, 3),
        CASE(waiting_for_any_for_all_and_for_a_while, 3),
        CASE(options_of_other_versions_are_accepted, 1),
        CASE_ALONE(communicators_may_be_waited_for_in_any_order, 2),
        CASE_ALONE(a_deadline_does_not_run_out_while_callers_compute, 2),
        CASE(a_thousand_sends_return_without_a_receiver, 2),
        CASE_ALONE(settings_may_be_those_of_one_communicator, 2),
        CASE_ALONE(a_refused_call_is_known_to_those_who_made_it, 2, 4),
        CASE(calls_that_all_refuse_do_no_harm, 3),
        CASE_ALONE(a_refused_send_ends_its_recv, 2),
        CASE_ALONE(a_call_behind_an_event_starts_when_it_is_set, 2),
        CASE_ALONE(a_closed_gate_is_no_failure_and_a_failed_one_is, 2),
        CASE(waiting_for_any_of_closed_gates_ends, 2),
        CASE_ALONE(callbacks_may_start_calls, 3),
    };
    if (argc != 2)
        return 2;
    cases_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
