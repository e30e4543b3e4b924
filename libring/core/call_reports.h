/* SPDX-License-Identifier: Apache-2.0
 * call_reports: tells other ranks over the control channel which calls this rank refused or waits
 * in, and compares their reports with its own calls. A report is sent as a control_statement. */
#ifndef RING_CORE_CALL_REPORTS_H
#define RING_CORE_CALL_REPORTS_H

#include "control.h"
#include "work.h"

#include <pthread.h>
#include <stdatomic.h>

/** The most reports of other ranks that are kept. */
enum { REPORTS_KEPT = 16 };
typedef struct call_reports {
    pthread_mutex_t lock;
    _Atomic bool any;
    bool fresh; /* some are not judged yet; together they count as one orphan */
    int count;
    int rank[REPORTS_KEPT];
    control_statement of[REPORTS_KEPT];
    /* Guarded by ring_comm.lock: */
    uint64_t stated;     /* number of the call that this rank last reported to wait in, plus 1 */
    uint64_t own_number; /* number of the call that this rank last refused */
    char own[240];       /* the reason for that refusal */
} call_reports;

void reports_listen(ring_comm *comm);
void reports_stop(ring_comm *comm);
/** Reports that this rank refuses a call, for the reason in fail_text(). The call takes its
 *  number. */
void reports_refuse(ring_comm *comm, const call_signature *call);
/** Reports to all ranks that this rank waits in a call. */
void reports_wait(work *w);
/** @return RING_ERR_MISMATCH if a rank reported that it refused a call that this rank made, or that
 *  it made a different one. */
ring_status reports_judge(ring_comm *comm);

#endif
