/* SPDX-License-Identifier: Apache-2.0
 * statements: what ranks tell each other of their calls, over the control channel. */
#ifndef RING_CORE_CALL_REPORTS_H
#define RING_CORE_CALL_REPORTS_H

#include "control.h"
#include "work.h"

#include <pthread.h>
#include <stdatomic.h>

/** Statements of other ranks about their calls: at most so many are kept. */
enum { REPORTS_KEPT = 16 };
typedef struct call_reports {
    pthread_mutex_t lock;
    _Atomic bool any;
    bool fresh; /* some are not judged yet: they count as one orphan */
    int count;
    int rank[REPORTS_KEPT];
    control_statement of[REPORTS_KEPT];
    /* Guarded by ring_comm.lock: */
    uint64_t stated;     /* number of the call that this rank said it waits in, plus 1 */
    uint64_t own_number; /* number of the call that this rank refused last */
    char own[240];       /* the reason of that refusal */
} call_reports;

void reports_listen(ring_comm *comm);
void reports_stop(ring_comm *comm);
/** This rank refuses a call for the reason in fail_text(): the call takes its number. */
void reports_refuse(ring_comm *comm, const call_signature *call);
/** Announces to all ranks that this rank waits in a call. */
void reports_wait(work *w);
/** RING_ERR_MISMATCH if a rank refused a call that this one made, or made another one. */
ring_status reports_judge(ring_comm *comm);

#endif
