/* SPDX-License-Identifier: Apache-2.0
 *
 * run_trace: records the instructions of all ranks in the first updates of a run in one file. Rank
 * 0 writes the file. The other ranks keep their parts in memory until the end of the run.
 */
#ifndef TRAIN_RUN_TRACE_H
#define TRAIN_RUN_TRACE_H

#include <ring/ring.h>

#include "output.h"
#include "update_trace.h"

typedef struct run_trace {
    const char *path; /* borrowed; NULL: no trace */
    output_file file; /* on rank 0 */
    FILE *part;       /* on other ranks: a stream in memory, which sets text and bytes */
    char *text;
    size_t bytes;
    update_trace trace;
    int updates; /* traced so far */
} run_trace;

/** Opens the file on rank 0, so that a path that cannot be written fails early. Close with
 *  run_trace_close() whatever the result. @param path  that of rank 0 counts; NULL: no trace. */
ring_status run_trace_open(run_trace *trace, const char *path, int rank);

/** Collective: starts the trace; its times count from now. */
ring_status run_trace_start(run_trace *trace, ring_comm *comm);

/** @return the trace to record @p update in; NULL: do not trace this update. */
update_trace *run_trace_next(run_trace *trace, long update);

/** Collective: appends the parts of all ranks to the file. */
ring_status run_trace_gather(run_trace *trace, ring_comm *comm);

/** Completes the file and renames it to its path. Further calls have no effect.
 *  @return RING_ERR_SYSTEM if it could not be written completely. */
ring_status run_trace_close(run_trace *trace);

#endif
