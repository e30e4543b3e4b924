/* SPDX-License-Identifier: Apache-2.0
 * Tests tagged sends and receives: their order, any source, which messages are sent ahead and how
 * many, every option of a call, and how they fail.
 * Usage: test_coll_tagged TRANSPORT */
#include "doubles/far.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "unit_test.h"

enum { AHEAD = 32768 }; /* int32 of the longest message that is sent ahead */

static ring_call tagged(int tag, ring_work **work)
{
    ring_call call = RING_CALL_INIT;
    call.tagged = 1;
    call.tag = tag;
    call.work = work;
    return call;
}

static ring_status send_one(ring_comm *comm, int to, int tag, int32_t value)
{
    const ring_call call = tagged(tag, NULL);
    return ring_send(&value, 1, RING_INT32, to, comm, &call);
}

static ring_status receive_one(ring_comm *comm, int from, int tag, int32_t *value,
                               ring_envelope *envelope)
{
    ring_call call = tagged(tag, NULL);
    call.envelope = envelope;
    return ring_recv(value, 1, RING_INT32, from, comm, &call);
}

static bool meet(harness_board *board, int counter, int ranks)
{
    atomic_fetch_add(&board->counters[counter], 1);
    return harness_await(board, counter, ranks);
}

/* ---- Tags ------------------------------------------------------------------------------------ */

static int backwards(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    enum { TAGS = 20, LONG = 100000 };
    ring_work *work;
    int32_t x;
    int32_t *large = calloc(LONG, sizeof *large);
    const ring_call behind = tagged(TAGS, &work);
    if (rank == 0) {
        large[LONG - 1] = 77;
        EXPECT_OK(ring_send(large, LONG, RING_INT32, 1, comm, &behind));
        for (int tag = 0; tag < TAGS; tag++)
            for (int i = 0; i < 3; i++)
                EXPECT_OK(send_one(comm, 1, tag, 10 * tag + i));
        EXPECT_OK(ring_wait(&work));
    } else {
        for (int tag = TAGS - 1; tag >= 0; tag--)
            for (int i = 0; i < 3; i++) {
                EXPECT_OK(receive_one(comm, 0, tag, &x, NULL));
                EXPECT(x == 10 * tag + i, "tag %d, message %d: %d", tag, i, x);
            }
        EXPECT_OK(ring_recv(large, LONG, RING_INT32, 0, comm, &behind));
        EXPECT_OK(ring_wait(&work));
        EXPECT(large[LONG - 1] == 77, "%d", large[LONG - 1]);
    }
    free(large);
    return 0;
}

/* Untagged calls are a class of their own, with tag 0 too; so is each communicator. */
static int classes(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    ring_comm *other;
    ring_envelope envelope;
    int32_t x = 1, got = 0;
    EXPECT_OK(ring_comm_dup(comm, &other));
    if (rank == 0) {
        EXPECT_OK(ring_send(&x, 1, RING_INT32, 1, comm, NULL));
        EXPECT_OK(send_one(other, 1, 0, 2));
        EXPECT_OK(send_one(comm, 1, 0, 3));
    } else {
        EXPECT_OK(receive_one(comm, RING_ANY_SOURCE, 0, &got, &envelope));
        EXPECT(got == 3 && envelope.source == 0 && envelope.tag == 0, "%d", got);
        EXPECT_OK(receive_one(other, 0, RING_ANY_TAG, &got, NULL));
        EXPECT(got == 2, "%d", got);
        EXPECT_OK(ring_recv(&got, 1, RING_INT32, 0, comm, NULL));
        EXPECT(got == 1, "%d", got);
    }
    ring_comm_destroy(other);
    return 0;
}

/* Messages without elements, and as many as fit into a header. */
static int short_ones(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    ring_envelope envelope = {-7, -7};
    int8_t out[64], in[64];
    for (int i = 0; i < 64; i++)
        out[i] = (int8_t)(i + 1);
    for (size_t count = 0; count <= 64; count++) {
        ring_call call = tagged((int)count, NULL);
        memset(in, 0, sizeof in);
        if (rank == 0) {
            EXPECT_OK(ring_send(out, count, RING_INT8, 1, comm, &call));
            continue;
        }
        call.envelope = &envelope;
        EXPECT_OK(ring_recv(in, count, RING_INT8, 0, comm, &call));
        EXPECT(memcmp(in, out, count) == 0 && (count == 64 || in[count] == 0), "%zu bytes", count);
        EXPECT(envelope.source == 0 && envelope.tag == (int)count, "%d", envelope.tag);
    }
    return 0;
}

static void test_tags_select(void **state)
{
    run_joined(2, backwards);
    run_joined(2, classes);
    run_joined(2, short_ones);
}

/* ---- Any source ---------------------------------------------------------------------------- */

/* Of all ranks, this one too, and rank 0 has named none of them before. */
static int from_all(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    enum { EACH = 50 };
    ring_work *mine[EACH] = {NULL};
    int32_t values[EACH], next[8] = {0}, x;
    ring_envelope envelope;
    for (int i = 0; i < EACH; i++) {
        const ring_call call = tagged(3, &mine[i]);
        values[i] = 100 * rank + i;
        EXPECT_OK(ring_send(&values[i], 1, RING_INT32, 0, comm, &call));
    }
    for (int i = 0; rank == 0 && i < EACH * ranks; i++) {
        EXPECT_OK(receive_one(comm, RING_ANY_SOURCE, 3, &x, &envelope));
        EXPECT(x == 100 * envelope.source + next[envelope.source]++, "%d of rank %d", x,
               envelope.source);
    }
    EXPECT_OK(ring_wait_all(mine, EACH));
    return 0;
}

/* A rank that has left is nobody's failure: what it sent is there, and others may still send. */
static int from_one_that_left(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    ring_envelope envelope;
    int32_t x;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (rank == 0) {
        EXPECT(harness_await(board, 0, 1), "a peer is late");
        usleep(50000); /* the receiver waits by then, mostly */
        EXPECT_OK(send_one(comm, 1, 0, 10));
    } else if (rank == 1) {
        for (int i = 0; i < 2; i++) {
            EXPECT_OK(receive_one(comm, RING_ANY_SOURCE, RING_ANY_TAG, &x, &envelope));
            EXPECT(x == 10 + envelope.source, "%d of rank %d", x, envelope.source);
        }
    } else {
        EXPECT_OK(send_one(comm, 1, 5, 12));
    }
    ring_comm_destroy(comm);
    if (rank == 2)
        atomic_store(&board->counters[0], 1);
    return 0;
}

static void test_a_receive_from_any_source_learns_whose_message_it_got(void **state)
{
    run_joined(4, from_all);
    run_joined(1, from_all);
    run(3, from_one_that_left);
}

/* ---- Ahead of the receiver ------------------------------------------------------------------- */

/* A send of 128 KiB ends without its receiver, one of 4 bytes more does not. */
static int boundary(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    ring_work *work;
    int done;
    int32_t *data = calloc(AHEAD + 1, sizeof *data);
    ring_call call = tagged(1, NULL);
    if (rank == 0) {
        data[AHEAD - 1] = 5;
        EXPECT_OK(ring_send(data, AHEAD, RING_INT32, 1, comm, &call));
        call.work = &work;
        EXPECT_OK(ring_send(data, AHEAD + 1, RING_INT32, 1, comm, &call));
        for (int i = 0; i < 100; i++) {
            EXPECT_OK(ring_test(&work, &done));
            EXPECT(!done, "sent without a receiver");
        }
        atomic_store(&board->counters[0], 1);
        EXPECT_OK(ring_wait(&work));
    } else {
        EXPECT(harness_await(board, 0, 1), "a peer is late");
        EXPECT_OK(ring_recv(data, AHEAD, RING_INT32, 0, comm, &call));
        EXPECT(data[AHEAD - 1] == 5, "%d", data[AHEAD - 1]);
        EXPECT_OK(ring_recv(data, AHEAD + 1, RING_INT32, 0, comm, &call));
    }
    free(data);
    return 0;
}

/* @return how many of the works are over. */
static int count_ended(ring_work **works, int count)
{
    int ended = 0;
    for (int i = 0; i < count; i++) {
        int done = 0;
        (void)ring_test(&works[i], &done);
        ended += done;
    }
    return ended;
}

/* Sends more short messages than are kept, and a later one that is received first. Messages beyond
 * the window wait for their receivers. */
static int backlog(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    enum { MESSAGES = 10000, COUNT = 100, KEPT = (512 << 10) / (COUNT * 4 + 192) };
    int32_t *data = calloc((size_t)MESSAGES * COUNT, sizeof *data), x = 0;
    ring_work **works = calloc(MESSAGES, sizeof(ring_work *));
    for (int round = 0; round < 2; round++) { /* freed room is used again */
        for (int i = 0; rank == 0 && i < MESSAGES; i++) {
            const ring_call call = tagged(1, &works[i]);
            data[i * COUNT] = i;
            EXPECT_OK(ring_send(data + (ptrdiff_t)i * COUNT, COUNT, RING_INT32, 1, comm, &call));
        }
        if (rank == 0) {
            EXPECT_OK(send_one(comm, 1, 2, 2));
            EXPECT_OK(receive_one(comm, 1, 2, &x, NULL));
            const int ended = count_ended(works, MESSAGES);
            EXPECT(ended <= KEPT && ended >= KEPT * 2 / 3, "%d messages are kept", ended);
            EXPECT_OK(send_one(comm, 1, 3, 3));
            EXPECT_OK(ring_wait_all(works, MESSAGES));
        } else {
            EXPECT_OK(receive_one(comm, 0, 2, &x, NULL));
            EXPECT_OK(send_one(comm, 0, 2, 2));
            EXPECT_OK(receive_one(comm, 0, 3, &x, NULL));
            const ring_call call = tagged(1, NULL);
            for (int i = 0; i < MESSAGES; i++) {
                EXPECT_OK(ring_recv(data, COUNT, RING_INT32, 0, comm, &call));
                EXPECT(data[0] == i, "message %d: %d", i, data[0]);
            }
        }
        EXPECT_OK(ring_barrier(comm, NULL));
    }
    free(works);
    free(data);
    return 0;
}

/* A long message is taken though its receiver computes, or waits for something else. */
static int receiver_is_elsewhere(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    enum { LONG = 300000 };
    ring_work *work;
    int32_t x = 1;
    int32_t *data = calloc(LONG, sizeof *data);
    for (int round = 0; round < 2; round++) {
        if (rank == 0) {
            const ring_call call = tagged(1, NULL);
            data[LONG - 1] = round + 1;
            EXPECT_OK(ring_send(data, LONG, RING_INT32, 1, comm, &call));
            atomic_store(&board->counters[0], 1);
            EXPECT_OK(ring_send(&x, 1, RING_INT32, 1, comm, NULL));
        } else {
            const ring_call call = tagged(1, &work);
            EXPECT_OK(ring_recv(data, LONG, RING_INT32, RING_ANY_SOURCE, comm, &call));
            if (round == 0)
                EXPECT(harness_await(board, 0, 1), "a peer is late");
            EXPECT_OK(ring_recv(&x, 1, RING_INT32, 0, comm, NULL));
            EXPECT_OK(ring_wait(&work));
            EXPECT(data[LONG - 1] == round + 1, "%d", data[LONG - 1]);
        }
    }
    free(data);
    return 0;
}

static int left_over(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    int32_t x;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    int32_t *data = calloc(AHEAD, sizeof *data);
    const ring_call call = tagged(2, NULL);
    if (rank == 0) {
        EXPECT_OK(ring_send(data, AHEAD, RING_INT32, 1, comm, &call));
        for (int i = 0; i < 100; i++)
            EXPECT_OK(send_one(comm, 1, 2, i));
        EXPECT_OK(send_one(comm, 1, 1, 7));
    } else {
        EXPECT_OK(receive_one(comm, 0, 1, &x, NULL));
        EXPECT(x == 7, "%d", x);
    }
    EXPECT_OK(ring_barrier(comm, NULL));
    EXPECT(ring_comm_status(comm) == RING_OK, "%s", ring_last_error(comm));
    free(data);
    ring_comm_destroy(comm);
    return 0;
}

static void test_short_messages_are_sent_ahead_and_long_ones_wait(void **state)
{
    run_joined(2, boundary);
    run_joined(2, backlog);
    run_joined(2, receiver_is_elsewhere);
    run(2, left_over);
}

/* ---- Options of a call ----------------------------------------------------------------------- */

/* A receive that waits for an event keeps its place among those of its tag.
 * @param closed  the event is not set before the second receive has ended. */
static int pass_gated_receive(ring_comm *comm, int rank, ring_event *event, size_t count,
                              bool closed)
{
    ring_work *first, *second;
    ring_envelope envelope;
    int32_t *a = calloc(count, sizeof *a), *b = calloc(count, sizeof *b);
    ring_call call = tagged(5, &first);
    const ring_call later = tagged(5, &second);
    call.after = event;
    if (rank == 0) {
        a[0] = 1, b[0] = 2;
        EXPECT_OK(ring_send(a, count, RING_INT32, 1, comm, &later));
        EXPECT_OK(ring_wait(&second));
        EXPECT_OK(ring_send(b, count, RING_INT32, 1, comm, &later));
        EXPECT_OK(ring_wait(&second));
    } else if (closed) {
        call.envelope = &envelope;
        EXPECT_OK(ring_recv(a, count, RING_INT32, RING_ANY_SOURCE, comm, &call));
        EXPECT_OK(ring_recv(b, count, RING_INT32, 0, comm, &later));
        EXPECT_OK(ring_wait(&second));
        EXPECT(a[0] == 0 && b[0] == 2, "%d, %d", a[0], b[0]);
        EXPECT_OK(ring_event_set(event, RING_OK));
        EXPECT_OK(ring_wait(&first));
        EXPECT(a[0] == 1 && envelope.source == 0, "%d", a[0]);
    } else {
        EXPECT_OK(ring_recv(a, count, RING_INT32, 0, comm, &call));
        EXPECT_OK(ring_recv(b, count, RING_INT32, RING_ANY_SOURCE, comm, &later));
        EXPECT_OK(ring_wait(&second));
        EXPECT_OK(ring_wait(&first));
        EXPECT(a[0] == 1 && b[0] == 2, "%d, %d", a[0], b[0]);
    }
    free(a);
    free(b);
    return 0;
}

/* Sends that wait for an event do not delay other tags. */
static int gated(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    enum { LONG = 100000 };
    ring_event *event;
    ring_work *first, *second;
    int32_t one = 1, two = 2, x;
    EXPECT_OK(ring_event_create(&event));
    if (pass_gated_receive(comm, rank, event, 1, true) != 0 ||
        pass_gated_receive(comm, rank, event, LONG, false) != 0)
        return 1;
    ring_call call = tagged(5, &first);
    const ring_call later = tagged(5, &second);
    call.after = event;
    if (rank == 0) {
        EXPECT_OK(ring_send(&one, 1, RING_INT32, 1, comm, &call));
        EXPECT_OK(ring_send(&two, 1, RING_INT32, 1, comm, &later));
        EXPECT_OK(send_one(comm, 1, 8, 3));
        EXPECT_OK(receive_one(comm, 1, 8, &x, NULL));
        EXPECT_OK(ring_event_set(event, RING_OK));
        EXPECT_OK(ring_wait(&first));
        EXPECT_OK(ring_wait(&second));
    } else {
        EXPECT_OK(receive_one(comm, 0, 8, &x, NULL));
        EXPECT(x == 3, "%d", x);
        EXPECT_OK(send_one(comm, 0, 8, 4));
        for (int i = 1; i < 3; i++) {
            EXPECT_OK(receive_one(comm, 0, 5, &x, NULL));
            EXPECT(x == i, "%d", x);
        }
    }
    ring_event_destroy(event);
    return 0;
}

static void count_done(void *context, ring_status status)
{
    atomic_fetch_add((_Atomic int *)context, status == RING_OK ? 1 : 100);
}

/* All pairs in a group, receives first; on_done tells of one more of each kind. */
static int grouped(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    int32_t out = rank, in[8], seen = 0, last = 100 + rank, from_last = 0;
    ring_envelope envelopes[8];
    ring_work *works[8];
    _Atomic int done = 0;
    size_t index;
    EXPECT_OK(ring_group_start());
    for (int i = 0; i < ranks; i++) {
        ring_call call = tagged(9, NULL);
        call.envelope = &envelopes[i];
        EXPECT_OK(ring_recv(&in[i], 1, RING_INT32, RING_ANY_SOURCE, comm, &call));
        call.envelope = NULL;
        EXPECT_OK(ring_send(&out, 1, RING_INT32, (rank + i) % ranks, comm, &call));
    }
    EXPECT_OK(ring_group_end());
    for (int i = 0; i < ranks; i++) {
        EXPECT(in[i] == envelopes[i].source, "%d of rank %d", in[i], envelopes[i].source);
        seen |= 1 << in[i];
    }
    EXPECT(seen == (1 << ranks) - 1, "%x", (unsigned)seen);
    ring_call told = tagged(4, NULL);
    told.on_done = count_done;
    told.context = &done;
    EXPECT_OK(ring_recv(&from_last, 1, RING_INT32, RING_ANY_SOURCE, comm, &told));
    EXPECT_OK(ring_send(&last, 1, RING_INT32, (rank + 1) % ranks, comm, &told));
    const ring_call any = tagged(6, &works[0]), other = tagged(7, &works[1]);
    EXPECT_OK(ring_recv(&in[0], 1, RING_INT32, RING_ANY_SOURCE, comm, &any));
    EXPECT_OK(ring_recv(&in[1], 1, RING_INT32, RING_ANY_SOURCE, comm, &other));
    EXPECT_OK(send_one(comm, (rank + 1) % ranks, 7, 7));
    EXPECT_OK(ring_wait_any(works, 2, &index));
    EXPECT(index == 1 && in[1] == 7, "%zu", index);
    EXPECT_OK(ring_barrier(comm, NULL));
    EXPECT_OK(send_one(comm, (rank + 1) % ranks, 6, 6));
    EXPECT_OK(ring_wait(&works[0]));
    EXPECT_OK(ring_barrier(comm, NULL));
    while (atomic_load(&done) < 2)
        usleep(100);
    EXPECT(done == 2 && from_last == 100 + (rank + ranks - 1) % ranks, "%d, %d", done, from_last);
    return 0;
}

static int prepared(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    ring_prepared *sends, *receives;
    ring_envelope envelope;
    int32_t out = 0, in;
    ring_call call = tagged(6, NULL), start = RING_CALL_INIT;
    call.prepared = &sends;
    EXPECT_OK(ring_send(&out, 1, RING_INT32, 1 - rank, comm, &call));
    call.prepared = &receives;
    EXPECT_OK(ring_recv(&in, 1, RING_INT32, RING_ANY_SOURCE, comm, &call));
    for (int i = 0; i < 10; i++) {
        out = 10 * rank + i;
        EXPECT_OK(ring_prepared_start(sends, NULL));
        start.envelope = &envelope;
        EXPECT_OK(ring_prepared_start(receives, &start));
        EXPECT(in == 10 * (1 - rank) + i && envelope.source == 1 - rank && envelope.tag == 6,
               "%d of %d", in, envelope.source);
    }
    EXPECT(ring_prepared_start(sends, &start) == RING_ERR_ARGUMENT, "an envelope of a send");
    EXPECT(ring_prepared_start(receives, &call) == RING_ERR_ARGUMENT, "a second tag");
    call.envelope = &envelope;
    call.prepared = &sends;
    ring_prepared_destroy(sends);
    EXPECT(ring_recv(&in, 1, RING_INT32, 0, comm, &call) == RING_ERR_ARGUMENT, "an early envelope");
    ring_prepared_destroy(receives);
    EXPECT_OK(ring_barrier(comm, NULL));
    return 0;
}

static void test_all_options_of_a_call_work(void **state)
{
    run_joined(2, gated);
    run_joined(3, grouped);
    run_joined(2, prepared);
}

/* A receive grants while its link has no room: the peer takes nothing before the grant is due. */
static int granted_over_a_full_link(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    enum { LONG = 100000, SHORT = 40000 };
    ring_work *work;
    int32_t x;
    int32_t *data = calloc(LONG, sizeof *data), *in = calloc(SHORT, sizeof *in);
    ring_work **works = calloc(SHORT, sizeof(ring_work *));
    ring_call call = tagged(1, &work);
    if (rank == 0) {
        data[LONG - 1] = 9;
        EXPECT_OK(ring_send(data, LONG, RING_INT32, 1, comm, &call));
        EXPECT_OK(send_one(comm, 1, 2, 0));
        EXPECT(harness_await(board, 0, 1), "a peer is late");
    } else {
        EXPECT_OK(receive_one(comm, 0, 2, &x, NULL));
    }
    for (int i = 0; i < SHORT; i++) {
        const ring_call behind = tagged(3, &works[i]);
        EXPECT_OK(rank == 0 ? ring_recv(&in[i], 1, RING_INT32, 1, comm, &behind)
                            : ring_send(&in[i], 1, RING_INT32, 0, comm, &behind));
    }
    if (rank == 1) {
        EXPECT_OK(ring_recv(data, LONG, RING_INT32, 0, comm, &call));
        atomic_store(&board->counters[0], 1);
    }
    EXPECT_OK(ring_wait(&work));
    EXPECT_OK(ring_wait_all(works, SHORT));
    EXPECT(data[LONG - 1] == 9, "%d", data[LONG - 1]);
    free(works);
    free(in);
    free(data);
    return 0;
}

/* The grant of a long send arrives while the same turn still sends later messages. */
static int a_grant_comes_while_its_send_is_advanced(ring_comm *comm, int rank, int ranks,
                                                    harness_board *board)
{
    enum { LONG = 100000, BEHIND = 4200, ROUNDS = 5 };
    ring_event *event;
    ring_work *work;
    int32_t x = 0;
    int32_t *data = calloc(LONG, sizeof *data);
    ring_work **works = calloc(BEHIND, sizeof(ring_work *));
    for (int round = 0; round < ROUNDS; round++) {
        ring_call call = tagged(5, &work);
        if (rank == 0) {
            EXPECT_OK(ring_event_create(&event));
            call.after = event;
            data[LONG - 1] = round + 1;
            EXPECT_OK(ring_send(data, LONG, RING_INT32, 1, comm, &call));
            for (int i = 0; i < BEHIND; i++) {
                const ring_call behind = tagged(5, &works[i]);
                EXPECT_OK(ring_send(&x, 1, RING_INT32, 1, comm, &behind));
            }
            EXPECT(harness_await(board, 0, round + 1), "a peer is late");
            EXPECT_OK(ring_event_set(event, RING_OK));
            EXPECT_OK(ring_wait(&work));
            EXPECT_OK(ring_wait_all(works, BEHIND));
            ring_event_destroy(event);
        } else {
            EXPECT_OK(ring_recv(data, LONG, RING_INT32, 0, comm, &call));
            atomic_store(&board->counters[0], round + 1);
            EXPECT_OK(ring_wait(&work));
            EXPECT(data[LONG - 1] == round + 1, "%d", data[LONG - 1]);
            for (int i = 0; i < BEHIND; i++)
                EXPECT_OK(receive_one(comm, 0, 5, &x, NULL));
        }
        EXPECT_OK(ring_barrier(comm, NULL));
    }
    free(works);
    free(data);
    return 0;
}

/* Without a thread that moves what nobody waits for, ranks take nothing while they compute. */
static void test_a_grant_waits_for_room(void **state)
{
    if (strcmp(cases_transport(), "loop") != 0 && strcmp(cases_transport(), "shm") != 0) {
        skip_because("only rings of lines are filled by so many messages");
    }
    setenv("RING_TIMEOUT", "20", 1);
    setenv("RING_PROGRESS", "none", 1);
    run_joined(2, granted_over_a_full_link);
    unsetenv("RING_PROGRESS");
    unsetenv("RING_TIMEOUT");
}

typedef struct exchange {
    int messages;
    size_t count; /* int32 of each */
} exchange;

/* Both ranks send before they receive, again and again, as much as is sent ahead for certain. */
static int exchanges(int rank, int ranks, harness_board *board, void *arg)
{
    enum { ROUNDS = 40 };
    const exchange *e = arg;
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    int32_t *data = calloc(e->count, sizeof *data);
    const ring_call call = tagged(1, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < e->messages; i++) {
            data[0] = 100 * round + i;
            EXPECT_OK(ring_send(data, e->count, RING_INT32, 1 - rank, comm, &call));
        }
        for (int i = 0; i < e->messages; i++) {
            EXPECT_OK(ring_recv(data, e->count, RING_INT32, 1 - rank, comm, &call));
            EXPECT(data[0] == 100 * round + i, "round %d, message %d: %d", round, i, data[0]);
        }
    }
    free(data);
    ring_comm_destroy(comm);
    return 0;
}

static void test_ranks_that_send_before_they_receive_go_on(void **state)
{
    static exchange sizes[] = {{1, 32700}, {5, 6500}, {500, 8}};
    setenv("RING_TIMEOUT", "20", 1);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        assert_int_equal(harness_run(cases_kind(), 2, exchanges, &sizes[i], NULL), 0);
    unsetenv("RING_TIMEOUT");
}

/* Memory of an accelerator, at either end, before and after the receive is there. */
static int far_ends(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    static const size_t counts[] = {1, 1000, AHEAD, 100000};
    int32_t *far = far_alloc(100000 * sizeof *far), *near = calloc(100000, sizeof *near), x = 0;
    for (size_t k = 0; k < 4 * sizeof counts / sizeof *counts; k++) {
        const size_t count = counts[k / 4];
        const bool sends_far = k % 2 != 0, late = k / 2 % 2 != 0;
        ring_work *work;
        const ring_call call = tagged((int)k, &work);
        for (size_t i = 0; i < count; i++)
            near[i] = rank == 0 ? (int32_t)(k * 1000 + i) : 0;
        if (rank == 0) {
            far_write(far, near, count * sizeof *near);
            EXPECT_OK(ring_send(sends_far ? far : near, count, RING_INT32, 1, comm, &call));
            EXPECT_OK(send_one(comm, 1, 100, 0));
            EXPECT_OK(ring_wait(&work));
            continue;
        }
        int32_t *to = sends_far ? near : far;
        if (late)
            EXPECT_OK(receive_one(comm, 0, 100, &x, NULL));
        EXPECT_OK(ring_recv(to, count, RING_INT32, RING_ANY_SOURCE, comm, &call));
        if (!late)
            EXPECT_OK(receive_one(comm, 0, 100, &x, NULL));
        EXPECT_OK(ring_wait(&work));
        if (!sends_far)
            far_read(near, far, count * sizeof *near);
        for (size_t i = 0; i < count; i++)
            EXPECT(near[i] == (int32_t)(k * 1000 + i), "case %zu, element %zu: %d", k, i, near[i]);
    }
    far_free(far);
    free(near);
    return 0;
}

static void test_memory_of_accelerators_is_sent_and_received(void **state)
{
    if (strcmp(cases_transport(), "ucx") != 0)
        run_joined(2, far_ends);
}

/* ---- Errors ------------------------------------------------------------------------------ */

static int refusals(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    ring_envelope envelope;
    int32_t x = 0;
#define REFUSED(text, made) \
    EXPECT((made) == RING_ERR_ARGUMENT && strcmp(ring_last_error(NULL), text) == 0, "%s", \
           ring_last_error(NULL))
    const int other = 1 - rank;
    ring_call call = tagged(-1, NULL);
    REFUSED("ring_send: ring_call.tag is -1; it must be 0 or more",
            ring_send(&x, 1, RING_INT32, other, comm, &call));
    call.tag = -2;
    REFUSED("ring_recv: ring_call.tag is -2; it must be 0 or more, or RING_ANY_TAG",
            ring_recv(&x, 1, RING_INT32, other, comm, &call));
    call.tag = 1;
    REFUSED("ring_barrier: ring_call.tagged is only for ring_send and ring_recv",
            ring_barrier(comm, &call));
    REFUSED("ring_send: peer is -1; the communicator has ranks 0 to 1",
            ring_send(&x, 1, RING_INT32, RING_ANY_SOURCE, comm, &call));
    REFUSED("ring_recv: dst is NULL but has 1 element",
            ring_recv(NULL, 1, RING_INT32, RING_ANY_SOURCE, comm, &call));
    call.envelope = &envelope;
    REFUSED("ring_send: ring_call.envelope is only for ring_recv",
            ring_send(&x, 1, RING_INT32, other, comm, &call));
    call.tagged = 0;
    REFUSED("ring_recv: ring_call.tag and envelope require ring_call.tagged = 1",
            ring_recv(&x, 1, RING_INT32, other, comm, &call));
    EXPECT_OK(send_one(comm, other, 1, 3 + rank));
    EXPECT_OK(receive_one(comm, other, 1, &x, NULL));
    EXPECT(x == 3 + other, "%d", x);
    EXPECT_OK(ring_barrier(comm, NULL));
    return 0;
}

/** Two calls that meet and differ. */
typedef struct difference {
    size_t sent, received;
    ring_dtype sent_type, received_type;
    bool late; /* the message was set aside */
} difference;

static int differing(int rank, int ranks, harness_board *board, void *arg)
{
    const difference *d = arg;
    ring_comm *comm;
    ring_work *work;
    char text[64];
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    char *data = calloc(100000, 8);
    ring_call call = tagged(4, &work);
    if (rank == 0) {
        EXPECT_OK(ring_send(data, d->sent, d->sent_type, 1 % ranks, comm, &call));
        if (d->late)
            (void)send_one(comm, 1 % ranks, 5, 0);
    }
    if (rank == ranks - 1) {
        int32_t x;
        if (d->late)
            EXPECT_OK(receive_one(comm, 0, 5, &x, NULL));
        call.work = NULL;
        EXPECT(ring_recv(data, d->received, d->received_type, RING_ANY_SOURCE, comm, &call) ==
                   RING_ERR_MISMATCH,
               "%s", ring_last_error(comm));
    }
    if (rank == 0)
        (void)ring_wait(&work);
    EXPECT(ring_barrier(comm, NULL) == RING_ERR_MISMATCH, "%s", ring_last_error(comm));
    snprintf(text, sizeof text, "(count %zu, %s, tag 4)", d->sent, ring_dtype_name(d->sent_type));
    EXPECT(strstr(ring_last_error(comm), text) != NULL, "%s", ring_last_error(comm));
    snprintf(text, sizeof text, "(count %zu, %s, tag 4)", d->received,
             ring_dtype_name(d->received_type));
    EXPECT(strstr(ring_last_error(comm), text) != NULL, "%s", ring_last_error(comm));
    free(data);
    ring_comm_destroy(comm);
    return 0;
}

static void test_what_is_wrong_is_told(void **state)
{
    static difference differences[] = {
        {5, 7, RING_INT32, RING_INT32, false},      {5, 5, RING_INT32, RING_FLOAT32, true},
        {1000, 999, RING_INT64, RING_INT64, true},  {100000, 99999, RING_INT64, RING_INT64, false},
        {100000, 5, RING_FLOAT64, RING_INT8, true},
    };
    run_joined(2, refusals);
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++)
        assert_int_equal(harness_run(cases_kind(), 2, differing, &differences[i], NULL), 0);
    assert_int_equal(harness_run(cases_kind(), 1, differing, &differences[0], NULL), 0);
}

static int too_late(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    int32_t x;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    ring_call call = tagged(RING_ANY_TAG, NULL);
    call.timeout = rank == 0 ? 0.2 : 0;
    EXPECT(ring_recv(&x, 1, RING_INT32, RING_ANY_SOURCE, comm, &call) == RING_ERR_TIMEOUT, "%s",
           ring_last_error(comm));
    EXPECT(strstr(ring_last_error(comm), "no message with any tag was sent by any rank") != NULL,
           "%s", ring_last_error(comm));
    ring_comm_destroy(comm);
    return 0;
}

static int aborted(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    ring_work *work;
    int32_t x;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const ring_call call = tagged(rank == 0 ? 2 : 1, &work);
    int32_t *data = calloc(100000, sizeof *data);
    if (rank == 0)
        EXPECT_OK(ring_send(data, 100000, RING_INT32, 1, comm, &call));
    else
        EXPECT_OK(ring_recv(&x, 1, RING_INT32, RING_ANY_SOURCE, comm, &call));
    EXPECT(meet(board, 0, ranks), "a peer is late");
    if (rank == 2)
        EXPECT_OK(ring_comm_abort(comm, "the test says so"));
    EXPECT(ring_wait(&work) == RING_ERR_ABORTED, "%s", ring_last_error(comm));
    free(data);
    ring_comm_destroy(comm);
    return 0;
}

/* The last rank dies while others wait for a message of any, for its own, and for its receive. */
static int killed(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    ring_work *work;
    int32_t x;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const ring_call call = tagged(1, &work);
    int32_t *data = calloc(100000, sizeof *data);
    if (rank == 0)
        EXPECT_OK(ring_recv(&x, 1, RING_INT32, RING_ANY_SOURCE, comm, &call));
    else if (rank == 1)
        EXPECT_OK(ring_recv(&x, 1, RING_INT32, ranks - 1, comm, &call));
    else if (rank == 2)
        EXPECT_OK(ring_send(data, 100000, RING_INT32, ranks - 1, comm, &call));
    EXPECT(meet(board, 0, ranks), "a peer is late");
    if (rank == ranks - 1)
        raise(SIGKILL);
    EXPECT(ring_wait(&work) == RING_ERR_PEER, "%s", ring_last_error(comm));
    EXPECT(strstr(ring_last_error(comm), "rank 3") != NULL, "%s", ring_last_error(comm));
    free(data);
    ring_comm_destroy(comm);
    return 0;
}

static void test_every_wait_ends(void **state)
{
    run(2, too_late);
    run(3, aborted);
    if (cases_kind() == HARNESS_PROCESSES)
        assert_int_equal(harness_run(HARNESS_PROCESSES, 4, killed, NULL, NULL), 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tags_select),
        cmocka_unit_test(test_a_receive_from_any_source_learns_whose_message_it_got),
        cmocka_unit_test(test_short_messages_are_sent_ahead_and_long_ones_wait),
        cmocka_unit_test(test_all_options_of_a_call_work),
        cmocka_unit_test(test_a_grant_waits_for_room),
        CASE(a_grant_comes_while_its_send_is_advanced, 2),
        cmocka_unit_test(test_ranks_that_send_before_they_receive_go_on),
        cmocka_unit_test(test_memory_of_accelerators_is_sent_and_received),
        cmocka_unit_test(test_what_is_wrong_is_told),
        cmocka_unit_test(test_every_wait_ends),
    };
    cases_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
