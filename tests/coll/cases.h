/* SPDX-License-Identifier: Apache-2.0
 *
 * cases: tests of communicators over the transport that the program is started for. A case is a
 * function that each rank runs, and the numbers of ranks to run it with. Include cmocka.h before.
 */
#ifndef RING_TEST_CASES_H
#define RING_TEST_CASES_H

#include "harness.h"

/** Run by each rank with a communicator of all, which the harness joins before and destroys
 *  after it. @return 0 if the rank succeeded. */
typedef int (*joined_body)(ring_comm *comm, int rank, int ranks, harness_board *board);

/** Takes the transport from the first argument ("loop" without one) and sets RING_TRANSPORT. */
void cases_begin(int argc, char **argv);
const char *cases_transport(void);
/** Threads or processes, as the transport has them. */
harness_kind cases_kind(void);

/** Fail the test unless all @p ranks succeed. A harness_body joins for itself, as those do whose
 *  calls fail: peers may touch the buffers of such a call until the communicator ends. */
void run(int ranks, harness_body body);
void run_joined(int ranks, joined_body body);

/** Rows of cmocka's table: one run with each number of ranks. */
#define CASE(body, ...) CASE_ROW(#body, ((joined_case){body, NULL, {__VA_ARGS__}}))
#define CASE_ALONE(body, ...) CASE_ROW(#body, ((joined_case){NULL, body, {__VA_ARGS__}}))
#define CASE_ROW(name, how) \
    { \
        name, run_case, NULL, NULL, &how \
    }

typedef struct joined_case {
    joined_body joined;
    harness_body alone; /* if joined is NULL */
    int ranks[9];       /* ends with 0 */
} joined_case;
void run_case(void **state);

#endif
