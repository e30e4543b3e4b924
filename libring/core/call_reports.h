/* SPDX-License-Identifier: Apache-2.0
 * call_reports: reports to the other ranks, over the control channel, the calls that this rank
 * refused or has waited in for long, and compares their reports with this rank's calls. Ranks that
 * made different calls thus fail instead of waiting for each other. A report is sent as a
 * control_statement. */
#ifndef RING_CORE_CALL_REPORTS_H
#define RING_CORE_CALL_REPORTS_H

#include "control.h"
#include "work.h"

#include <pthread.h>
#include <stdatomic.h>

/** The largest number of other ranks' reports that are stored. */
enum { REPORTS_KEPT = 16 };
typedef struct call_reports {
    pthread_mutex_t lock;
    _Atomic bool any;
    bool fresh; /* a report has arrived since the last reports_judge(). It counts as one orphan, so
                   that the progress thread judges it if no call does */
    int count;
    int rank[REPORTS_KEPT];
    control_statement of[REPORTS_KEPT];
    /* These members are guarded by ring_comm.lock. */
    uint64_t stated;     /* number of the latest call that reports_wait() reported, plus 1 */
    uint64_t own_number; /* number of the call that this rank refused last */
    char own[240];       /* the reason why it refused the call */
} call_reports;

/** Starts to receive the reports of other ranks. */
void reports_listen(ring_comm *comm);
/** Stops receiving reports, and ignores those that have not been judged. */
void reports_stop(ring_comm *comm);
/** Reports that this rank refuses a call, for the reason in fail_text(). The refused call uses up a
 *  call number, because ranks that accept the call give it one. */
void reports_refuse(ring_comm *comm, const call_signature *call);
/** Reports to all ranks that this rank waits in a call. Each call is reported once. */
void reports_wait(work *w);
/** @return RING_ERR_MISMATCH if a rank reported that it refused a call that this rank made, or that
 *  it made a different one. */
ring_status reports_judge(ring_comm *comm);

#endif
