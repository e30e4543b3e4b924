/* SPDX-License-Identifier: Apache-2.0
 * cmocka's assertions belong to the thread of the test: the others leave a text. */
#include "thread_ranks.h"

#include <pthread.h>
#include <stdio.h>

#include "check.h"

typedef struct thread_rank {
    const ring_unique_id *id;
    int rank, ranks;
    thread_rank_fn *function;
    void *context;
    ring_status status;
    char error[512];
} thread_rank;

static void *run_rank(void *argument)
{
    thread_rank *at = argument;
    ring_comm *comm = NULL;
    at->status = ring_comm_init(&comm, at->ranks, at->id, at->rank);
    if (at->status == RING_OK)
        at->status = at->function(comm, at->context);
    if (at->status != RING_OK)
        snprintf(at->error, sizeof at->error, "%s", ring_train_error());
    ring_comm_destroy(comm);
    return NULL;
}

void thread_ranks_run(int ranks, thread_rank_fn *function, void *const contexts[])
{
    ring_unique_id id;
    pthread_t threads[THREAD_RANKS_MAX];
    thread_rank at[THREAD_RANKS_MAX];
    assert_true(ranks <= THREAD_RANKS_MAX);
    assert_int_equal(ring_get_unique_id(&id), RING_OK);
    for (int r = 0; r < ranks; r++) {
        at[r] = (thread_rank){
            .id = &id, .rank = r, .ranks = ranks, .function = function, .context = contexts[r]};
        assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &at[r]), 0);
    }
    for (int r = 0; r < ranks; r++)
        pthread_join(threads[r], NULL);
    for (int r = 0; r < ranks; r++) {
        if (at[r].status != RING_OK)
            fail_msg("rank %d: %s", r, at[r].error);
    }
}
