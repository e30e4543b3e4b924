/* SPDX-License-Identifier: Apache-2.0
 * Adds stops to streams. All stops are allocated when the GPU is opened, because allocating pinned
 * memory later could wait for streams that are stopped. They are reused.
 * Each use of a stop has a number, which only grows, and the stream waits until resume() sets a
 * word to it. So a stream neither continues because of an earlier use, nor misses the word if it
 * reaches the stop late. A stop that is resumed before its stream has reached it is reused only
 * after that. */
#include "cuda_stops.h"

#include <pthread.h>
#include <stdlib.h>

enum { STOPS_MOST = 4096 /* calls on streams of one GPU that have not been reached */ };
/* Seconds for which a call waits for a stop that streams have passed. */
static const double most_wait = 60;

/* The words of a stop, in pinned memory. */
typedef struct stop_words {
    ticket reached;
    _Atomic uint32_t go;
} stop_words;

typedef struct cuda_stop {
    accelerator_stop base; /* must be first: its address is converted to the stop's */
    struct cuda_stop *next;
    struct cuda_stops *of;
    stop_words *words;
    CUdeviceptr reached_there, go_there; /* the addresses of the words for the GPU     */
    uint32_t use;                        /* number of the use; its stream waits for it */
} cuda_stop;

struct cuda_stops {
    pthread_mutex_t lock;
    stop_words *words; /* [STOPS_MOST] */
    cuda_stop *idle;
    cuda_stop *resumed; /* streams may still have to reach these */
    cuda_stop all[STOPS_MOST];
};

/* ---- Allocation ----------------------------------------------------------------------------- */

/* Makes the resumed stops idle that their streams have reached. */
static void collect_reached(struct cuda_stops *stops)
{
    for (cuda_stop **at = &stops->resumed; *at != NULL;) {
        cuda_stop *s = *at;
        if (ticket_status(&s->words->reached) == RING_IN_PROGRESS) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        s->next = stops->idle;
        stops->idle = s;
    }
}

static cuda_stop *take_idle(struct cuda_stops *stops)
{
    pthread_mutex_lock(&stops->lock);
    collect_reached(stops);
    cuda_stop *s = stops->idle;
    if (s != NULL)
        stops->idle = s->next;
    pthread_mutex_unlock(&stops->lock);
    return s;
}

/* Waits while all stops are in use, which ends when streams reach them. */
static ring_status take(const cuda_device *c, cuda_stop **out)
{
    const double end = clock_now() + most_wait;
    cuda_stop *s;
    while ((s = take_idle(c->stops)) == NULL) {
        if (clock_now() > end)
            return fail(RING_ERR_MEMORY,
                        "streams of %s have %d calls ahead of them; synchronize with them from "
                        "time to time",
                        c->name, (int)STOPS_MOST);
        clock_sleep(1e-4);
    }
    ticket_open(&s->words->reached);
    s->base.reached = &s->words->reached;
    *out = s;
    return RING_OK;
}

static void give_back(cuda_stop *s)
{
    pthread_mutex_lock(&s->of->lock);
    s->next = s->of->resumed;
    s->of->resumed = s;
    pthread_mutex_unlock(&s->of->lock);
}

/* Hands out a stop that was taken and put into a stream, or gives it back if @p status says that it
 * could not be put there. */
static ring_status hand_out(cuda_stop *s, ring_status status, accelerator_stop **out)
{
    if (status == RING_OK) {
        *out = &s->base;
        return RING_OK;
    }
    ticket_close(&s->words->reached, RING_OK);
    give_back(s);
    return status;
}

/* ---- Streams -------------------------------------------------------------------------------- */

static ring_status add_stop(const cuda_driver *api, CUstream stream, cuda_stop *s)
{
    s->use++;
    RING_TRY(cuda_check(api->stream_write_value(stream, s->reached_there, RING_OK, 0),
                        "marking a place in a stream (cuStreamWriteValue32)"));
    const CUresult result = api->stream_wait_value(stream, s->go_there, s->use,
                                                   CU_STREAM_WAIT_VALUE_GEQ);
    if (result != CUDA_SUCCESS)
        atomic_store(&s->words->go, s->use);
    return cuda_check(result, "stopping a stream (cuStreamWaitValue32)");
}

static ring_status cuda_stop_stream(const accelerator *a, void *stream, accelerator_stop **out)
{
    const cuda_device *c = cuda_device_of(a);
    cuda_stop *s;
    RING_TRY(take(c, &s));
    ring_status status = cuda_enter(c);
    if (status == RING_OK) {
        status = add_stop(cuda_driver_load(), stream, s);
        cuda_leave();
    }
    return hand_out(s, status, out);
}

ring_status cuda_default_is_busy(bool *busy)
{
    const CUresult result = cuda_query(cuda_driver_load(), CUDA_LEGACY_STREAM);
    *busy = result == CUDA_ERROR_NOT_READY;
    if (*busy || result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return RING_OK;
    return cuda_check(result, "looking for work of the default stream (cuStreamQuery)");
}

/* A stop at which the legacy stream does not wait. */
static ring_status mark_legacy(const cuda_device *c, accelerator_stop **out)
{
    const cuda_driver *api = cuda_driver_load();
    cuda_stop *s;
    bool busy;
    RING_TRY(cuda_default_is_busy(&busy));
    if (!busy)
        return RING_OK;
    RING_TRY(take(c, &s));
    const ring_status status =
        cuda_check(api->stream_write_value(CUDA_LEGACY_STREAM, s->reached_there, RING_OK, 0),
                   "marking a place in the default stream (cuStreamWriteValue32)");
    return hand_out(s, status, out);
}

static ring_status cuda_mark_default(const accelerator *a, accelerator_stop **out)
{
    *out = NULL;
    RING_TRY(cuda_enter(cuda_device_of(a)));
    const ring_status status = mark_legacy(cuda_device_of(a), out);
    cuda_leave();
    return status;
}

static void cuda_resume(accelerator_stop *stop)
{
    cuda_stop *s = (cuda_stop *)(void *)stop;
    atomic_store_explicit(&s->words->go, s->use, memory_order_release);
    give_back(s);
}

static bool is_no_stream(CUresult result)
{
    return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_INVALID_HANDLE ||
           result == CUDA_ERROR_INVALID_CONTEXT || result == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/* The handles of default streams belong to the current context, so the device's context is entered
 * for them. Other handles are looked up without that, which saves calls of the driver, unless this
 * thread has no context. */
static ring_status cuda_owns_stream(const accelerator *a, void *stream, bool *yes)
{
    const cuda_device *c = cuda_device_of(a);
    const cuda_driver *api = cuda_driver_load();
    CUcontext of = NULL;
    CUresult result = CUDA_ERROR_INVALID_CONTEXT;
    if ((uintptr_t)stream > CUDA_DEFAULT_STREAMS)
        result = api->stream_get_context(stream, &of);
    if (result == CUDA_ERROR_INVALID_CONTEXT) {
        RING_TRY(cuda_enter(c));
        result = api->stream_get_context(stream, &of);
        cuda_leave();
    }
    *yes = result == CUDA_SUCCESS && of == c->context;
    return is_no_stream(result)
               ? RING_OK
               : cuda_check(result, "finding the owner of a stream (cuStreamGetCtx)");
}

/* ---- Captures ------------------------------------------------------------------------------- */

static ring_status cuda_captures(const accelerator *a, void *stream, bool *captured)
{
    CUstreamCaptureStatus state;
    (void)a;
    RING_TRY(cuda_check(cuda_driver_load()->stream_is_capturing(stream, &state),
                        "checking whether a stream is being captured (cuStreamIsCapturing)"));
    *captured = state == CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return RING_OK;
}

/* ---- Opening -------------------------------------------------------------------------------- */

ring_status cuda_stops_open(cuda_device *c)
{
    void *words;
    CUdeviceptr there;
    struct cuda_stops *stops = c->stops = calloc(1, sizeof *c->stops);
    if (stops == NULL)
        return fail(RING_ERR_MEMORY, "opening a GPU");
    pthread_mutex_init(&stops->lock, NULL);
    RING_TRY(cuda_pin(STOPS_MOST * sizeof(stop_words), &words, &there));
    stops->words = words;
    for (size_t i = STOPS_MOST; i-- > 0;) {
        const CUdeviceptr at = there + i * sizeof(stop_words);
        stops->all[i] = (cuda_stop){.of = stops,
                                    .words = &stops->words[i],
                                    .reached_there = at + offsetof(stop_words, reached),
                                    .go_there = at + offsetof(stop_words, go),
                                    .next = stops->idle};
        atomic_init(&stops->words[i].go, 0);
        stops->idle = &stops->all[i];
    }
    c->base.owns_stream = cuda_owns_stream;
    c->base.orders_host = true;
    c->base.stop = cuda_stop_stream;
    c->base.mark_default = cuda_mark_default;
    c->base.resume = cuda_resume;
    c->base.captures = cuda_captures;
    return RING_OK;
}

void cuda_stops_close(cuda_device *c)
{
    struct cuda_stops *stops = c->stops;
    if (stops == NULL)
        return;
    if (stops->words != NULL)
        (void)cuda_driver_load()->host_free(stops->words);
    pthread_mutex_destroy(&stops->lock);
    free(stops);
}
