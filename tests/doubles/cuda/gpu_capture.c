/* SPDX-License-Identifier: Apache-2.0
 * Captures: streams whose calls become a graph, and what must not be done meanwhile. */
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

/* A clock says how many ops of each stream of the capture are known to have ended. */
typedef struct capture_clock {
    int ops[MOST_CAPTURED];
} capture_clock;

struct capture {
    uint64_t id;
    CUstreamCaptureMode mode;
    const void *thread;
    bool invalid;
    CUgraph handle;
    graph *graph;
    int slots[MOST_CAPTURED], count; /* the first began it */
    capture_clock clocks[MOST_CAPTURED];
};

static struct {
    pthread_mutex_t lock;
    uint64_t ids;
    capture *of[MOST_STREAMS];
    struct {
        uint64_t id; /* 0: not captured */
        capture_clock clock;
    } events[MOST_EVENTS];
} captures = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local CUstreamCaptureMode thread_mode;

static const void *this_thread(void)
{
    return &thread_mode;
}

capture *capture_of(int slot)
{
    return captures.of[slot];
}

graph *capture_graph(capture *c)
{
    return c->graph;
}

void capture_invalidate(capture *c)
{
    c->invalid = true;
}

CUresult capture_refuses(int slot)
{
    capture *c = capture_of(slot);
    if (c != NULL)
        capture_invalidate(c);
    return c != NULL ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : 0;
}

CUresult capture_forbids(void)
{
    CUresult result = 0;
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return 0;
    pthread_mutex_lock(&captures.lock);
    for (int i = 0; i < MOST_STREAMS; i++) {
        capture *c = captures.of[i];
        if (c == NULL || c->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
            continue;
        const bool all = c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                         thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (c->thread == this_thread() || all) {
            capture_invalidate(c);
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    pthread_mutex_unlock(&captures.lock);
    return result;
}

CUresult capture_forbids_legacy(int slot)
{
    CUresult result = 0;
    const int device = gpu->streams[slot].device;
    if (slot != device + 1)
        return 0;
    pthread_mutex_lock(&captures.lock);
    for (int i = 0; i < MOST_STREAMS; i++)
        if (captures.of[i] != NULL && !gpu->streams[i].non_blocking &&
            gpu->streams[i].device == device)
            result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    pthread_mutex_unlock(&captures.lock);
    return result;
}

/* ---- Events join streams ---- */

static int place_in(const capture *c, int slot)
{
    int i = 0;
    while (c->slots[i] != slot)
        i++;
    return i;
}

CUresult capture_append(int slot, const op *o)
{
    pthread_mutex_lock(&captures.lock);
    capture *c = captures.of[slot];
    const bool invalid = c->invalid;
    const int i = place_in(c, slot);
    if (!invalid) {
        graph_place place = {.stream = i, .nth = c->clocks[i].ops[i]++};
        memcpy(place.known, c->clocks[i].ops, sizeof place.known);
        place.known[i] = place.nth;
        graph_add(c->graph, o, &place);
    }
    pthread_mutex_unlock(&captures.lock);
    return invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : 0;
}

CUresult capture_record(int slot, int event_slot)
{
    pthread_mutex_lock(&captures.lock);
    const capture *c = captures.of[slot];
    const bool invalid = c->invalid;
    captures.events[event_slot].id = c->id;
    captures.events[event_slot].clock = c->clocks[place_in(c, slot)];
    pthread_mutex_unlock(&captures.lock);
    return invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : 0;
}

void capture_forget_event(int event_slot)
{
    pthread_mutex_lock(&captures.lock);
    captures.events[event_slot].id = 0;
    pthread_mutex_unlock(&captures.lock);
}

bool capture_has_event(int event_slot)
{
    pthread_mutex_lock(&captures.lock);
    const bool captured = captures.events[event_slot].id != 0;
    pthread_mutex_unlock(&captures.lock);
    return captured;
}

static capture *with_id(uint64_t id)
{
    for (int i = 0; i < MOST_STREAMS; i++)
        if (captures.of[i] != NULL && captures.of[i]->id == id)
            return captures.of[i];
    return NULL;
}

static void join(capture *c, int slot, const capture_clock *known)
{
    if (captures.of[slot] == NULL) {
        if (c->count == MOST_CAPTURED)
            misuse("a capture of too many streams");
        captures.of[slot] = c;
        c->slots[c->count++] = slot;
    }
    capture_clock *mine = &c->clocks[place_in(c, slot)];
    for (int i = 0; i < MOST_CAPTURED; i++)
        if (mine->ops[i] < known->ops[i])
            mine->ops[i] = known->ops[i];
}

/* @return under the lock. */
static CUresult wait_for_event(int slot, int event_slot, bool *handled)
{
    capture *mine = captures.of[slot];
    const uint64_t id = captures.events[event_slot].id;
    const gpu_event *e = &gpu->events[event_slot];
    *handled = id != 0 || mine != NULL;
    if (!*handled)
        return 0;
    if (id == 0 && e->ticket == 0 && e->cell == NULL)
        return 0; /* never recorded */
    if (id == 0) {
        capture_invalidate(mine);
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    capture *other = with_id(id);
    if (other == NULL)
        return CUDA_ERROR_CAPTURED_EVENT; /* of a capture that has ended */
    if (mine != NULL && mine != other) {
        capture_invalidate(mine);
        capture_invalidate(other);
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (other->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (slot == gpu->streams[slot].device + 1) {
        capture_invalidate(other);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    join(other, slot, &captures.events[event_slot].clock);
    return 0;
}

CUresult capture_wait(int slot, int event_slot, bool *handled)
{
    pthread_mutex_lock(&captures.lock);
    const CUresult result = wait_for_event(slot, event_slot, handled);
    pthread_mutex_unlock(&captures.lock);
    return result;
}

/* ---- Begin and end ---- */

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode)
{
    int slot;
    ENTER();
    TRY(stream_find(handle, &slot));
    if (slot == gpu->streams[slot].device + 1)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (captures.of[slot] != NULL)
        return CUDA_ERROR_INVALID_VALUE;
    capture *c = calloc(1, sizeof *c);
    if (c == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->mode = mode;
    c->thread = this_thread();
    c->graph = graph_new();
    c->handle = object_add(OBJECT_GRAPH, c->graph);
    c->slots[c->count++] = slot;
    pthread_mutex_lock(&captures.lock);
    c->id = ++captures.ids;
    captures.of[slot] = c;
    pthread_mutex_unlock(&captures.lock);
    return 0;
}

static CUresult fault_of(const capture *c)
{
    if (c->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    for (int i = 1; i < c->count; i++)
        if (c->clocks[0].ops[i] < c->clocks[i].ops[i])
            return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    return 0;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *out)
{
    int slot;
    ENTER();
    *out = NULL;
    TRY(stream_find(handle, &slot));
    pthread_mutex_lock(&captures.lock);
    capture *c = captures.of[slot];
    CUresult result = c == NULL || c->slots[0] != slot ? CUDA_ERROR_STREAM_CAPTURE_UNMATCHED : 0;
    if (result == 0 && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != this_thread())
        result = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (result != 0) {
        pthread_mutex_unlock(&captures.lock);
        return result;
    }
    for (int i = 0; i < c->count; i++)
        captures.of[c->slots[i]] = NULL;
    pthread_mutex_unlock(&captures.lock);
    result = fault_of(c);
    if (result == 0)
        *out = c->handle;
    else
        graph_free(object_take(OBJECT_GRAPH, c->handle));
    free(c);
    return result;
}

/* ---- Questions ---- */

static CUresult status_of(CUstream handle, CUstreamCaptureStatus *status, const capture **out)
{
    int slot;
    TRY(stream_find(handle, &slot));
    TRY(capture_forbids_legacy(slot));
    const capture *c = *out = capture_of(slot);
    *status = c == NULL    ? CU_STREAM_CAPTURE_STATUS_NONE
              : c->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                           : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return 0;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *out)
{
    const capture *c;
    ENTER();
    return status_of(handle, out, &c);
}

/* Which nodes come last is not told: a graph is a list. */
CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *status, uint64_t *id,
                                   CUgraph *graph_out, const CUgraphNode **nodes,
                                   size_t *node_count)
{
    const capture *c;
    ENTER();
    TRY(status_of(handle, status, &c));
    if (c != NULL && id != NULL)
        *id = c->id;
    if (c != NULL && graph_out != NULL)
        *graph_out = c->handle;
    if (nodes != NULL)
        *nodes = NULL;
    if (node_count != NULL)
        *node_count = 0;
    return 0;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    ENTER();
    const CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return 0;
}
