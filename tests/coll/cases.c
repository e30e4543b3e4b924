/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "cases.h"
#include "unit_test.h"

static const char *transport;

void cases_begin(int argc, char **argv)
{
    transport = argc > 1 ? argv[1] : "loop";
    setenv("RING_TRANSPORT", transport, 1);
}

const char *cases_transport(void)
{
    return transport;
}

harness_kind cases_kind(void)
{
    return harness_kind_of(transport);
}

void run(int ranks, harness_body body)
{
    assert_int_equal(harness_run(cases_kind(), ranks, body, NULL, NULL), 0);
}

static int join(int rank, int ranks, harness_board *board, void *arg)
{
    const joined_body *body = arg;
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const int failed = (*body)(comm, rank, ranks, board);
    if (failed == 0)
        ring_comm_destroy(comm);
    return failed;
}

void run_joined(int ranks, joined_body body)
{
    assert_int_equal(harness_run(cases_kind(), ranks, join, &body, NULL), 0);
}

void run_case(void **state)
{
    const joined_case *c = *state;
    for (const int *ranks = c->ranks; *ranks > 0; ranks++)
        if (c->joined != NULL)
            run_joined(*ranks, c->joined);
        else
            run(*ranks, c->alone);
}
