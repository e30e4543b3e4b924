/* SPDX-License-Identifier: Apache-2.0
 *
 * Any one allocation of one rank fails: either the rank can do without it, or all ranks soon get an
 * error that reports it, and none waits for a deadline, whether the others already knew the rank or
 * not. RING_TEST_SHORTAGES: tests every n-th allocation (13).
 * Usage: test_fault_shortage TRANSPORT */
#include "harness.h"
#include "known_calls.h"
#include "short_memory.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

enum { RANKS = 3, NEVER = -1 };

typedef struct shortage {
    int victim;
    long nth; /* allocation of the victim, from 0; NEVER */
} shortage;

typedef struct findings {
    long allocations; /* of the victim, until it ended */
    double failed;    /* when, 0: never                */
    known_outcome outcomes[RANKS];
} findings;

/* ---- Memory ------------------------------------------------------------------------ */

static _Atomic bool counts;
static _Atomic long allocations, failing = NEVER;
static _Atomic double failed;

/* @return false: this one fails. */
static bool may_allocate(void)
{
    if (!atomic_load(&counts) || atomic_fetch_add(&allocations, 1) != atomic_load(&failing))
        return true;
    atomic_store(&failed, harness_now());
    errno = ENOMEM;
    return false;
}

/* ---- A rank ------------------------------------------------------------------------ */

static int take_part(int rank, int ranks, harness_board *board, void *arg)
{
    const shortage *s = arg;
    findings *found = (findings *)(void *)board->data;
    known_outcome *mine = &found->outcomes[rank];
    ring_comm *comm = NULL;
    if (rank == 0 && ring_get_unique_id(&board->id) != RING_OK)
        return 1;
    if (rank == 0)
        atomic_store(&board->id_ready, 1);
    while (atomic_load(&board->id_ready) == 0)
        sched_yield();
    atomic_store(&failing, s->nth);
    atomic_store(&counts, rank == s->victim);
    mine->status = ring_comm_init(&comm, ranks, &board->id, rank);
    known_calls_note(comm, rank, ranks, mine);
    atomic_store(&counts, false);
    if (rank == s->victim) {
        found->allocations = atomic_load(&allocations);
        found->failed = atomic_load(&failed);
    }
    ring_comm_destroy(comm);
    return 0;
}

/* ---- Runs -------------------------------------------------------------------------- */

static findings run(shortage s)
{
    harness_board *board;
    findings found;
    assert_int_equal(harness_run(HARNESS_PROCESSES, RANKS, take_part, &s, &board), 0);
    memcpy(&found, board->data, sizeof found);
    harness_board_free(board);
    return found;
}

/* An error of one rank is an error of all. */
static bool all_know(const findings *f)
{
    int errors = 0;
    for (int r = 0; r < RANKS; r++)
        errors += f->outcomes[r].status != RING_OK;
    return errors == 0 || errors == RANKS;
}

static void judge(const shortage *s, const findings *f)
{
    bool well = all_know(f);
    for (int r = 0; r < RANKS; r++)
        well = well && known_outcome_is_told(&f->outcomes[r], f->failed);
    if (well)
        return;
    known_outcomes_print(f->outcomes, RANKS, f->failed);
    fail_msg("allocation %ld of rank %d failed", s->nth, s->victim);
}

static void an_allocation_that_fails_is_told_of(void **state)
{
    const long stride = (long)harness_number("RING_TEST_SHORTAGES", 13);
    for (int victim = 0; victim < RANKS; victim++) {
        const findings whole = run((shortage){victim, NEVER});
        long hits = 0, errors = 0;
        for (long nth = victim % stride; nth < whole.allocations; nth += stride) {
            const shortage s = {victim, nth};
            const findings f = run(s);
            judge(&s, &f);
            hits += f.failed > 0;
            errors += f.outcomes[victim].status != RING_OK;
        }
        print_message("rank %d: %ld allocations, %ld failed, %ld ended the calls\n", victim,
                      whole.allocations, hits, errors);
        assert_true(errors > 0);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    setenv("RING_TRANSPORT", argv[1], 1);
    setenv("RING_TIMEOUT", "10", 1);
    setenv("RING_INIT_TIMEOUT", "10", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_allocation_that_fails_is_told_of)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
