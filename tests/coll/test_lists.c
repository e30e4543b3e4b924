/* SPDX-License-Identifier: Apache-2.0
 * Lists: what differs from the v-forms, of which test_uneven draws the values of both. Blocks of
 * several kinds of memory, in any order; new addresses at each call; options; what is wrong.
 * Usage: test_coll_lists TRANSPORT */
#include "doubles/far.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "unit_test.h"

enum { MOST = 4 };

/* The value that rank @p from gives rank @p to. */
static int32_t value(int from, int to, int round, size_t i)
{
    return from * 1000003 + to * 10007 + round * 101 + (int32_t)i;
}

static size_t count_of(int from, int to, size_t most)
{
    return (from + 2 * to) % 4 == 1 ? 0 : most / (size_t)(1 + (from + to) % 3);
}

/* ---- Blocks of all kinds --------------------------------------------------------------------- */

/* Plain, shared and registered in turns. */
static int32_t *new_block(int kind, size_t count)
{
    void *block = NULL;
    if (kind % 3 == 1)
        return ring_mem_alloc(&block, (count + 1) * sizeof(int32_t)) == RING_OK ? block : NULL;
    block = calloc(count + 1, sizeof(int32_t));
    if (kind % 3 == 2 && ring_mem_register(block, (count + 1) * sizeof(int32_t)) != RING_OK)
        return NULL;
    return block;
}

static void free_block(int kind, int32_t *block)
{
    if (kind % 3 == 2)
        ring_mem_deregister(block);
    if (kind % 3 == 1)
        ring_mem_free(block);
    else
        free(block);
}

typedef struct blocks {
    int32_t *at[MOST];
    size_t counts[MOST];
} blocks;

static int make_blocks(blocks *b, int rank, int ranks, bool gives, size_t most, int kind)
{
    for (int i = 0; i < ranks; i++) {
        const int peer = ranks - 1 - i; /* of several: not in the order of addresses */
        b->counts[peer] = gives ? count_of(rank, peer, most) : count_of(peer, rank, most);
        b->at[peer] = new_block(kind + i, b->counts[peer]);
        EXPECT(b->at[peer] != NULL, "no memory");
        b->at[peer][b->counts[peer]] = -1;
    }
    return 0;
}

static void drop_blocks(blocks *b, int ranks, int kind)
{
    for (int i = 0; i < ranks; i++)
        free_block(kind + i, b->at[ranks - 1 - i]);
}

static void fill(const blocks *b, int rank, int ranks, int round)
{
    for (int to = 0; to < ranks; to++)
        for (size_t i = 0; i < b->counts[to]; i++)
            b->at[to][i] = value(rank, to, round, i);
}

static int compare(const blocks *b, int rank, int ranks, int round)
{
    for (int from = 0; from < ranks; from++) {
        for (size_t i = 0; i < b->counts[from]; i++)
            EXPECT(b->at[from][i] == value(from, rank, round, i), "round %d, from %d, element %zu",
                   round, from, i);
        EXPECT(b->at[from][b->counts[from]] == -1, "round %d, from %d: wrote past its end", round,
               from);
    }
    return 0;
}

static ring_status exchange(const blocks *src, const blocks *dst, ring_comm *comm,
                            const ring_call *call)
{
    return ring_all_to_all_list((const void *const *)src->at, src->counts, (void *const *)dst->at,
                                dst->counts, RING_INT32, comm, call);
}

static int one_exchange(int rank, int ranks, size_t most, int round, ring_comm *comm)
{
    blocks src, dst;
    EXPECT(make_blocks(&src, rank, ranks, true, most, round) == 0, "src");
    EXPECT(make_blocks(&dst, rank, ranks, false, most, round + 1) == 0, "dst");
    fill(&src, rank, ranks, round);
    EXPECT_OK(exchange(&src, &dst, comm, NULL));
    const int wrong = compare(&dst, rank, ranks, round);
    drop_blocks(&src, ranks, round);
    drop_blocks(&dst, ranks, round + 1);
    return wrong;
}

/* New memory at each call, which costs no program. */
static int blocks_lie_in_any_memory(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    static const size_t most[] = {5, 3000, 200000};
    ring_comm_info info = {.size = sizeof info};
    for (size_t k = 0; k < sizeof most / sizeof *most; k++)
        for (int round = 0; round < 6; round++)
            EXPECT(one_exchange(rank, ranks, most[k], round, comm) == 0, "%zu elements", most[k]);
    EXPECT_OK(ring_comm_get_info(comm, &info));
    EXPECT(info.lowered == sizeof most / sizeof *most, "%llu programs",
           (unsigned long long)info.lowered);
    return 0;
}

/* ---- Options --------------------------------------------------------------------------------- */

/* The arrays, which the caller then uses for something else. */
static int exchange_and_forget(blocks src, blocks dst, ring_comm *comm, const ring_call *call)
{
    EXPECT_OK(exchange(&src, &dst, comm, call));
    memset(&src, 0xff, sizeof src);
    memset(&dst, 0xff, sizeof dst);
    return 0;
}

static int prepared_round(const blocks *src, const blocks *dst, int rank, int ranks, int round,
                          ring_comm *comm)
{
    ring_prepared *prepared;
    ring_call call = RING_CALL_INIT;
    call.prepared = &prepared;
    EXPECT(exchange_and_forget(*src, *dst, comm, &call) == 0, "preparing");
    fill(src, rank, ranks, round);
    EXPECT_OK(ring_prepared_start(prepared, NULL));
    ring_prepared_destroy(prepared);
    return compare(dst, rank, ranks, round);
}

static int grouped_round(const blocks *src, const blocks *dst, int rank, int ranks, int round,
                         ring_comm *comm)
{
    ring_work *work;
    ring_event *event;
    ring_call call = RING_CALL_INIT;
    EXPECT_OK(ring_event_create(&event));
    call.work = &work;
    call.after = event;
    EXPECT_OK(ring_group_start());
    EXPECT(exchange_and_forget(*src, *dst, comm, &call) == 0, "in a group");
    EXPECT_OK(ring_group_end());
    fill(src, rank, ranks, round);
    EXPECT_OK(ring_event_set(event, RING_OK));
    EXPECT_OK(ring_wait(&work));
    ring_event_destroy(event);
    return compare(dst, rank, ranks, round);
}

/* Arrays of a call are the caller's again when it returns, whenever the call begins. */
static int arrays_are_read_before_the_call_returns(ring_comm *comm, int rank, int ranks,
                                                   harness_board *board)
{
    enum { MOST_ELEMENTS = 50000 };
    blocks src, dst;
    EXPECT(make_blocks(&src, rank, ranks, true, MOST_ELEMENTS, 0) == 0, "src");
    EXPECT(make_blocks(&dst, rank, ranks, false, MOST_ELEMENTS, 1) == 0, "dst");
    for (int round = 0; round < 4; round += 2) {
        EXPECT(prepared_round(&src, &dst, rank, ranks, round, comm) == 0, "prepared");
        EXPECT(grouped_round(&src, &dst, rank, ranks, round + 1, comm) == 0, "grouped");
    }
    drop_blocks(&src, ranks, 0);
    drop_blocks(&dst, ranks, 1);
    return 0;
}

/* Each rank's blocks times its factor. */
static int blocks_are_multiplied_where_they_lie(ring_comm *comm, int rank, int ranks,
                                                harness_board *board)
{
    enum { COUNT = 4000 };
    const double factor = rank + 0.5;
    const size_t counts[MOST] = {COUNT, 0, COUNT / 2, 7};
    float *blocks_of[MOST], *dst = calloc(COUNT, sizeof *dst);
    ring_call call = RING_CALL_INIT;
    for (int b = ranks - 1; b >= 0; b--) {
        blocks_of[b] = counts[b] > 0 ? malloc(counts[b] * sizeof(float)) : NULL;
        for (size_t i = 0; i < counts[b]; i++)
            blocks_of[b][i] = (float)((int)i % 30 - b);
    }
    call.scale = &factor;
    EXPECT_OK(ring_reduce_scatter_list((const void *const *)blocks_of, counts, dst, RING_FLOAT32,
                                       RING_PREMUL_SUM, comm, &call));
    const float all = (float)(ranks * ranks) * 0.5F; /* 0.5 + 1.5 + 2.5 … */
    for (size_t i = 0; i < counts[rank]; i++) {
        EXPECT(dst[i] == all * (float)((int)i % 30 - rank), "element %zu: %g", i, (double)dst[i]);
        EXPECT(blocks_of[rank][i] == (float)((int)i % 30 - rank), "src was changed");
    }
    for (int b = 0; b < ranks; b++)
        free(blocks_of[b]);
    free(dst);
    return 0;
}

/* ---- Wrong arguments ------------------------------------------------------------------------- */

static int what_is_wrong_is_refused_before_anything_is_sent(int rank, int ranks,
                                                            harness_board *board, void *arg)
{
    const size_t two[2] = {2, 2}, second[2] = {0, 2};
    float x[8] = {0}, y[8];
    void *apart[2] = {y + 4, y}, *over[2] = {y, y + 1}, *askew[2] = {y, (char *)y + 9};
    void *hole[2] = {NULL, y}, *own[2] = {x, x + 2};
    const void *const *over_src = (const void *const *)over, *const *own_src = (void *)own;
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_REFUSED(ring_all_gather_list(x, NULL, two, RING_FLOAT32, comm, NULL),
                   "the list of the blocks of dst is NULL");
    EXPECT_REFUSED(ring_all_gather_list(x, apart, NULL, RING_FLOAT32, comm, NULL), "counts of dst");
    EXPECT_REFUSED(ring_all_gather_list(x, hole, two, RING_FLOAT32, comm, NULL),
                   "block 0 of dst is NULL but has 2 elements");
    EXPECT_REFUSED(ring_all_gather_list(x, askew, two, RING_FLOAT32, comm, NULL),
                   "block 1 of dst must");
    EXPECT_REFUSED(ring_all_gather_list(x, over, two, RING_FLOAT32, comm, NULL),
                   "the blocks of ranks 0 (dst) and 1 (dst) overlap");
    EXPECT_REFUSED(ring_all_gather_list(y + 5, apart, two, RING_FLOAT32, comm, NULL), "overlap");
    EXPECT_REFUSED(ring_all_gather_list(NULL, apart, two, RING_FLOAT32, comm, NULL), "src is NULL");
    EXPECT_REFUSED(ring_reduce_scatter_list(over_src, two, x, RING_FLOAT32, RING_SUM, comm, NULL),
                   "(src) and 1 (src) overlap");
    EXPECT_REFUSED(ring_all_to_all_list(own_src, two, own, two, RING_FLOAT32, comm, NULL),
                   "overlap");
    EXPECT_OK(ring_all_gather_list(x, hole, second, RING_FLOAT32, comm, NULL));
    EXPECT_OK(ring_all_gather_list(own[rank], own, two, RING_FLOAT32, comm, NULL));
    EXPECT_OK(ring_all_to_all_list(over_src, two, own, two, RING_FLOAT32, comm, NULL));
    /* src lies between the blocks of dst: in its span, and in none of them. */
    EXPECT_OK(ring_all_gather_list(y + 2, apart, two, RING_FLOAT32, comm, NULL));
    ring_comm_destroy(comm);
    return 0;
}

static int different_counts_are_shown_on_all_ranks(int rank, int ranks, harness_board *board,
                                                   void *arg)
{
    const size_t out[2] = {rank == 1 ? 9000 : 1, 1}, in[2] = {1, rank == 0 ? 8000 : 1};
    float *x = calloc(9001, sizeof *x), *y = calloc(9001, sizeof *y);
    const void *srcs[2] = {x, x + 9000};
    void *dsts[2] = {y + 9000, y};
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT(ring_all_to_all_list(srcs, out, dsts, in, RING_FLOAT32, comm, NULL) ==
                   RING_ERR_MISMATCH ||
               ring_barrier(comm, NULL) == RING_ERR_MISMATCH,
           "%s", ring_last_error(comm));
    EXPECT(strstr(ring_last_error(comm), "sends 9000 elements to rank 0") != NULL &&
               strstr(ring_last_error(comm), "expects 8000") != NULL,
           "%s", ring_last_error(comm));
    ring_comm_destroy(comm);
    free(x);
    free(y);
    return 0;
}

static int lost_peer(int rank, int ranks, harness_board *board, void *arg)
{
    const size_t counts[2] = {100000, 100000};
    float *x = calloc(200000, sizeof *x), *y = calloc(100000, sizeof *y);
    void *dsts[2] = {x + 100000, x};
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_all_gather_list(y, dsts, counts, RING_FLOAT32, comm, NULL));
    for (board->counters[0]++; board->counters[0] < ranks;) /* the first one is over on both */
        usleep(1000);
    if (rank == 1)
        _exit(0);
    const double since = harness_now();
    EXPECT(ring_all_gather_list(y, dsts, counts, RING_FLOAT32, comm, NULL) == RING_ERR_PEER, "%s",
           ring_last_error(comm));
    EXPECT(harness_is_prompt(since), "%g s", harness_now() - since);
    ring_comm_destroy(comm);
    free(x);
    free(y);
    return 0;
}

static void test_a_lost_peer_ends_it(void **state)
{
    if (cases_kind() == HARNESS_PROCESSES)
        run(2, lost_peer);
}

/* ---- Memory of accelerators ------------------------------------------------------------------ */

static int blocks_may_be_an_accelerators(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    enum { COUNT = 30000 };
    const size_t counts[2] = {COUNT, COUNT / 3};
    const size_t bytes = COUNT * sizeof(int32_t);
    int32_t *near = malloc(bytes);
    void *far[2] = {far_alloc(bytes), far_alloc(bytes)}, *mixed[2] = {far[0], near};
    for (size_t i = 0; i < COUNT; i++)
        near[i] = value(rank, 0, 0, i);
    EXPECT(ring_all_gather_list(near, mixed, counts, RING_INT32, comm, NULL) ==
               RING_ERR_UNSUPPORTED,
           "%s", ring_last_error(NULL));
    EXPECT_OK(ring_all_gather_list(near, far, counts, RING_INT32, comm, NULL));
    for (int from = 0; from < ranks; from++) {
        far_read(near, far[from], counts[from] * sizeof *near);
        for (size_t i = 0; i < counts[from]; i++)
            EXPECT(near[i] == value(from, 0, 0, i), "from %d, element %zu", from, i);
    }
    far_free(far[0]);
    far_free(far[1]);
    free(near);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(blocks_lie_in_any_memory, 1, 2, 4),
        CASE(arrays_are_read_before_the_call_returns, 2, 3),
        CASE(blocks_are_multiplied_where_they_lie, 2, 4),
        CASE_ALONE(what_is_wrong_is_refused_before_anything_is_sent, 2),
        CASE_ALONE(different_counts_are_shown_on_all_ranks, 2),
        cmocka_unit_test(test_a_lost_peer_ends_it),
        CASE(blocks_may_be_an_accelerators, 2),
    };
    cases_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
