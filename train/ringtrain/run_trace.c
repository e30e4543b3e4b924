/* SPDX-License-Identifier: Apache-2.0
 * Writes the trace of each rank to a stream. At the end, rank 0 appends all streams to its file. */
#include "run_trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "common_clock.h"
#include "errors.h"

enum { TRACED_UPDATES = 20 /* a few megabytes at most */ };

/* @return the stream that this rank writes to; NULL: there is no trace. */
static FILE *stream_of(const run_trace *trace)
{
    return trace->file.stream != NULL ? trace->file.stream : trace->part;
}

ring_status run_trace_open(run_trace *trace, const char *path, int rank)
{
    *trace = (run_trace){.path = path};
    if (path == NULL || rank != 0 || output_begin(&trace->file, path))
        return RING_OK;
    return train_fail(RING_ERR_SYSTEM, "--trace %s: %s", path, strerror(errno));
}

ring_status run_trace_start(run_trace *trace, ring_comm *comm)
{
    double wanted = trace->file.stream != NULL, zero;
    RING_TRY(train_ring(comm, ring_broadcast(&wanted, &wanted, 1, RING_FLOAT64, 0, comm, NULL)));
    if (wanted == 0.0)
        return RING_OK;
    if (trace->file.stream == NULL)
        trace->part = open_memstream(&trace->text, &trace->bytes);
    RING_TRY(agree(comm, stream_of(trace) != NULL
                             ? RING_OK
                             : train_fail(RING_ERR_MEMORY, "no memory for the trace")));
    RING_TRY(common_clock_zero(comm, &zero));
    update_trace_begin(&trace->trace, stream_of(trace), ring_comm_rank(comm), zero);
    return RING_OK;
}

update_trace *run_trace_next(run_trace *trace, long update)
{
    if (stream_of(trace) == NULL || trace->updates == TRACED_UPDATES)
        return NULL;
    trace->updates++;
    trace->trace.update = update;
    return &trace->trace;
}

/* ---- Gathering ----------------------------------------------------------------------------- */

/* Closes the stream in memory. @return false: memory was too short. */
static bool end_part(run_trace *trace)
{
    const bool whole = trace->part == NULL || fclose(trace->part) == 0;
    trace->part = NULL;
    return whole;
}

/* Receives the parts of the other ranks in order, and appends each to the file of rank 0.
 * @param bytes  [ranks] sizes of the parts. @param room  a buffer for the largest part */
static ring_status append_parts(const run_trace *trace, const uint64_t *bytes, char *room,
                                ring_comm *comm)
{
    for (int r = 1; r < ring_comm_size(comm); r++) {
        RING_TRY(train_ring(comm, ring_recv(room, bytes[r], RING_UINT8, r, comm, NULL)));
        fwrite(room, 1, bytes[r], trace->file.stream);
    }
    return RING_OK;
}

/* Sends the parts of all ranks to rank 0. @param bytes  [ranks] sizes of the parts */
static ring_status move_parts(run_trace *trace, const uint64_t *bytes, ring_comm *comm)
{
    char *room = NULL;
    uint64_t most = 1;
    ring_status status = RING_OK;
    for (int r = 0; r < ring_comm_size(comm); r++)
        most = bytes[r] > most ? bytes[r] : most;
    if (trace->file.stream != NULL)
        status = train_alloc((void **)&room, most, "the trace");
    status = agree(comm, status);
    if (status == RING_OK && trace->file.stream != NULL)
        status = append_parts(trace, bytes, room, comm);
    else if (status == RING_OK)
        status = train_ring(comm, ring_send(trace->text, trace->bytes, RING_UINT8, 0, comm, NULL));
    free(room);
    return status;
}

ring_status run_trace_gather(run_trace *trace, ring_comm *comm)
{
    uint64_t *bytes;
    if (stream_of(trace) == NULL)
        return RING_OK;
    ring_status status = train_alloc((void **)&bytes, (size_t)ring_comm_size(comm) * sizeof *bytes,
                                     "the trace");
    if (!end_part(trace))
        status = train_fail(RING_ERR_MEMORY, "no memory for the trace");
    status = agree(comm, status);
    const uint64_t mine = trace->bytes;
    if (status == RING_OK)
        status = train_ring(comm, ring_all_gather(&mine, bytes, 1, RING_UINT64, comm, NULL));
    if (status == RING_OK)
        status = move_parts(trace, bytes, comm);
    free(bytes);
    return status;
}

ring_status run_trace_close(run_trace *trace)
{
    end_part(trace);
    free(trace->text);
    trace->text = NULL;
    if (trace->file.stream == NULL)
        return RING_OK;
    update_trace_end(trace->file.stream);
    if (output_finish(&trace->file))
        return RING_OK;
    return train_fail(RING_ERR_SYSTEM, "--trace %s: %s", trace->path, strerror(errno));
}
