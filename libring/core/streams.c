/* SPDX-License-Identifier: Apache-2.0
 * Checks calls on streams, and puts the stops of the calls that the host drives into the streams.
 */
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
    const accelerator *own = c->comm->accelerator; /* a default stream belongs to any context */
    bool yes = false;
    if (own != NULL && own->owns_stream != NULL)
        RING_TRY(own->owns_stream(own, stream, &yes));
    if (yes)
        c->stream_of = own;
    else
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

const accelerator *stream_orders(const prepared_call *c)
{
    const accelerator *a = c->stream_of;
    if (c->options.stream == NULL)
        a = c->buffers.src_by != NULL ? c->buffers.src_by : c->buffers.dst_by;
    return a != NULL && (c->options.stream != NULL || a->mark_default != NULL) ? a : NULL;
}

ring_status stream_stop(prepared_call *c)
{
    const accelerator *a = stream_orders(c);
    RING_TRY(c->options.stream != NULL ? a->stop(a, c->options.stream, &c->stop)
                                       : a->mark_default(a, &c->stop));
    if (c->stop != NULL)
        stop_begin(c->stop, a, c->options.stream == NULL);
    return RING_OK;
}

ring_status stream_check_capture(const prepared_call *c)
{
    const ring_call *o = &c->options;
    if (!c->captured || (o->work == NULL && o->on_done == NULL && o->after == NULL))
        return RING_OK;
    return fail(RING_ERR_UNSUPPORTED,
                "ring_%s: its stream is captured into a graph, and each replay makes the call "
                "again; leave out ring_call.work, ring_call.on_done and ring_call.after",
                c->program->facts->name);
}
