/* SPDX-License-Identifier: Apache-2.0
 * Checks calls on streams, puts their stops into the streams, and hands captured calls to
 * graphs. */
#include "streams.h"

#include "accelerators.h"
#include "prepared.h"
#include "progress_thread.h"

static ring_status find_owner(prepared_call *c, const char *name)
{
    void *stream = c->options.stream;
    if (!accelerators_are_there())
        return fail(RING_ERR_UNSUPPORTED,
                    "ring_%s: ring_call.stream is set, but this process uses no accelerator", name);
    RING_TRY(accelerators_of_stream(stream, &c->stream_of));
    return c->stream_of != NULL
               ? RING_OK
               : fail(RING_ERR_UNSUPPORTED,
                      "ring_%s: ring_call.stream (%p) is not a stream of an accelerator that this "
                      "process uses",
                      name, stream);
}

static ring_status check_side(const prepared_call *c, size_t bytes, const accelerator *memory_of)
{
    const accelerator *a = c->stream_of;
    const char *name = c->program->facts->name;
    if (bytes == 0 || memory_of == a || (memory_of == NULL && a->orders_host))
        return RING_OK;
    return fail(RING_ERR_UNSUPPORTED,
                "ring_%s: ring_call.stream is a stream of %s, but a buffer is in memory of %s",
                name, a->name,
                memory_of != NULL ? memory_of->name : "the host, which that stream does not order");
}

ring_status stream_check(prepared_call *c)
{
    const call_buffers *b = &c->buffers;
    const char *name = c->program->facts->name;
    RING_TRY(find_owner(c, name));
    if (c->stream_of->captures != NULL)
        RING_TRY(c->stream_of->captures(c->stream_of, c->options.stream, &c->captured));
    RING_TRY(check_side(c, b->src_bytes, b->src_by));
    RING_TRY(check_side(c, b->dst_bytes, b->dst_by));
    if (c->comm->settings.progress == PROGRESS_NONE && c->options.work == NULL)
        return fail(
            RING_ERR_UNSUPPORTED,
            "ring_%s: with RING_PROGRESS=none there is no thread to end a call on a stream; set "
            "ring_call.work and wait for it",
            name);
    return RING_OK;
}

static void bind_stop(accelerator_stop *stop, const accelerator *by)
{
    stop->by = by;
    atomic_init(&stop->holders, 1);
}

ring_status stream_stop(prepared_call *c)
{
    const accelerator *a = c->stream_of;
    RING_TRY(a->stop(a, c->options.stream, &c->stop));
    bind_stop(c->stop, a);
    return RING_OK;
}

/* ---- Graphs --------------------------------------------------------------------------------- */

static ring_status check_captured(const prepared_call *c)
{
    const ring_call *o = &c->options;
    const char *why = NULL;
    if (o->work != NULL || o->on_done != NULL || o->after != NULL)
        why = "each replay makes the call again; leave out ring_call.work, on_done and after";
    else if (c->call.tagged)
        why = "such a call cannot have a tag";
    else if (c->comm->settings.progress == PROGRESS_NONE)
        why = "with RING_PROGRESS=none there is no thread to make the call";
    return why == NULL
               ? RING_OK
               : fail(RING_ERR_UNSUPPORTED, "ring_%s: its stream is captured into a graph: %s",
                      c->program->facts->name, why);
}

/* Called by a thread of the accelerator when a replay has reached the stop of the calls. */
static void on_start(void *calls, accelerator_stop *stop)
{
    bind_stop(stop, ((const prepared_call *)calls)->stream_of);
    stop->call = calls;
    if (!progress_start(stop))
        stop_drop(&stop);
}

static void on_forget(void *calls)
{
    prepared_drop_all(calls);
}

static ring_status capture(prepared_call *calls)
{
    const accelerator *a = calls->stream_of;
    for (const prepared_call *c = calls; c != NULL; c = c->next)
        RING_TRY(check_captured(c));
    for (const prepared_call *c = calls; c != NULL; c = c->next) {
        comm_lock(c->comm);
        c->comm->streams.late = true; /* from now on, calls on streams are numbered late, too */
        progress_serve(c->comm);
        comm_unlock(c->comm);
    }
    return a->capture(a, calls->options.stream, on_start, on_forget, calls);
}

ring_status stream_capture(prepared_call *calls)
{
    const ring_status status = capture(calls);
    if (status != RING_OK)
        prepared_drop_all(calls);
    return status;
}
