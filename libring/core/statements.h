/* SPDX-License-Identifier: Apache-2.0
 * statements: what ranks tell each other of their calls, over the control channel. */
#ifndef RING_CORE_STATEMENTS_H
#define RING_CORE_STATEMENTS_H

#include "control.h"
#include "work.h"

#include <pthread.h>
#include <stdatomic.h>

/** Statements of other ranks about their calls: at most so many are kept. */
enum { STATEMENTS_HEARD = 16 };
typedef struct statements {
    pthread_mutex_t lock;
    _Atomic bool any;
    bool fresh; /* some are not judged yet: they count as one orphan */
    int count;
    int rank[STATEMENTS_HEARD];
    control_statement of[STATEMENTS_HEARD];
    /* Guarded by ring_comm.lock: */
    uint64_t stated;     /* number of the call that this rank said it waits in, plus 1 */
    uint64_t own_number; /* number of the call that this rank refused last */
    char own[240];       /* the reason of that refusal */
} statements;

void statements_listen(ring_comm *comm);
void statements_stop(ring_comm *comm);
/** This rank refuses a call for the reason in fail_text(): the call takes its number. */
void statements_refuse(ring_comm *comm, const call_signature *call);
/** Announces to all ranks that this rank waits in a call. */
void statements_wait(work *w);
/** RING_ERR_MISMATCH if a rank refused a call that this one made, or made another one. */
ring_status statements_judge(ring_comm *comm);

#endif
