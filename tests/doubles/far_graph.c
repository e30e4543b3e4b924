/* SPDX-License-Identifier: Apache-2.0
 * Implements graphs of far memory's accelerator: the recorded requests to a stream, which each
 * replay executes. */
#include "far_parts.h"

#include "base.h"

#include <stdlib.h>

void far_capture_begin(far_stream *s)
{
    far_graph *g = calloc(1, sizeof *g);
    if (g == NULL)
        abort();
    g->end = &g->first;
    far_stream_record(s, g);
}

far_graph *far_capture_end(far_stream *s)
{
    far_graph *g = far_stream_recorded(s);
    far_stream_record(s, NULL);
    return g;
}

void far_graph_replay(far_graph *g, far_stream *s)
{
    for (const far_job *j = g->first; j != NULL; j = j->next)
        if (!far_stream_add(s, j))
            abort();
}

void far_graph_destroy(far_graph *g)
{
    for (far_job *next, *j = g->first; j != NULL; j = next) {
        next = j->next;
        if (j->kind == FAR_JOB_START) {
            j->forget(j->context);
            free(j->stop);
        }
        free(j);
    }
    free(g);
}

/* The stop is one for all replays, which come one after the other. */
void far_job_start(const far_job *j)
{
    far_stop_init(j->stop);
    ticket_close(&j->stop->reached, RING_OK);
    j->start(j->context, &j->stop->base);
    far_stop_wait(j->stop);
}

ring_status far_captures(const accelerator *a, void *stream, bool *captured)
{
    *captured = far_stream_recorded(stream) != NULL;
    return RING_OK;
}

ring_status far_capture(const accelerator *a, void *stream,
                        void (*start)(void *context, accelerator_stop *stop),
                        void (*forget)(void *context), void *context)
{
    far_job job = {.kind = FAR_JOB_START, .start = start, .forget = forget, .context = context};
    job.stop = malloc(sizeof *job.stop);
    if (job.stop != NULL && far_stream_add(stream, &job))
        return RING_OK;
    free(job.stop);
    return fail(RING_ERR_MEMORY, "recording a call in a graph of %s", a->name);
}
