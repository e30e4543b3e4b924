/* SPDX-License-Identifier: Apache-2.0
 *
 * run_trace: one file with what all ranks did in the first updates of a run. Rank 0 writes it; the
 * others keep their part in memory until the end.
 */
#ifndef TRAIN_RUN_TRACE_H
#define TRAIN_RUN_TRACE_H

#include <ring/ring.h>

#include "output.h"
#include "update_trace.h"

typedef struct run_trace {
    const char *path; /* borrowed; NULL: none */
    output_file file; /* of rank 0 */
    FILE *part;       /* of another rank, into text */
    char *text;
    size_t bytes;
    update_trace trace;
    int updates; /* so far */
} run_trace;

/** Opens the file on rank 0, so that a path that cannot be written is known. End with
 *  run_trace_close() whatever the result. @param path  rank 0's counts; NULL: no trace. */
ring_status run_trace_open(run_trace *trace, const char *path, int rank);

/** Collective: the trace's zero is now. */
ring_status run_trace_start(run_trace *trace, ring_comm *comm);

/** @return where to write the next update, or NULL: it is not traced. */
update_trace *run_trace_next(run_trace *trace, long update);

/** Collective: brings all parts into the file. */
ring_status run_trace_gather(run_trace *trace, ring_comm *comm);

/** Puts the file in place, with what has been gathered. May be called again.
 *  @return RING_ERR_SYSTEM if it could not be written completely. */
ring_status run_trace_close(run_trace *trace);

#endif
