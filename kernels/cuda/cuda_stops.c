/* SPDX-License-Identifier: Apache-2.0
 * Adds stops to streams and to graphs. Stops are kept in pages of pinned memory and are reused.
 * Each use of a stop has a number, which only grows, and the stream waits until resume() sets a
 * word to it. So a stream neither continues because of an earlier use, nor misses the word if it
 * reaches the stop late. A stop that is resumed before its stream has reached it is reused only
 * after that. */
#include "cuda_stops.h"

#include <pthread.h>
#include <stdlib.h>

enum { STOPS_OF_PAGE = 64 };

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

typedef struct stop_page {
    struct stop_page *next;
    stop_words *words; /* [STOPS_OF_PAGE] */
    cuda_stop stops[STOPS_OF_PAGE];
} stop_page;

struct cuda_stops {
    pthread_mutex_t lock;
    stop_page *pages;
    cuda_stop *idle, *resumed; /* streams may still have to reach the resumed ones */
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

static ring_status add_page(struct cuda_stops *stops)
{
    stop_page *page = calloc(1, sizeof *page);
    void *words;
    CUdeviceptr there;
    if (page == NULL)
        return fail(RING_ERR_MEMORY, "stopping a stream");
    const ring_status status = cuda_pin(STOPS_OF_PAGE * sizeof(stop_words), &words, &there);
    if (status != RING_OK) {
        free(page);
        return status;
    }
    page->words = words;
    page->next = stops->pages;
    stops->pages = page;
    for (int i = 0; i < STOPS_OF_PAGE; i++) {
        cuda_stop *s = &page->stops[i];
        *s = (cuda_stop){.of = stops,
                         .words = &page->words[i],
                         .reached_there = there + (size_t)i * sizeof(stop_words) +
                                          offsetof(stop_words, reached),
                         .go_there = there + (size_t)i * sizeof(stop_words) +
                                     offsetof(stop_words, go),
                         .next = stops->idle};
        atomic_init(&s->words->go, 0);
        stops->idle = s;
    }
    return RING_OK;
}

static ring_status take(const cuda_device *c, cuda_stop **out)
{
    struct cuda_stops *stops = c->stops;
    ring_status status = RING_OK;
    pthread_mutex_lock(&stops->lock);
    collect_reached(stops);
    if (stops->idle == NULL)
        status = add_page(stops);
    if (status == RING_OK) {
        *out = stops->idle;
        stops->idle = (*out)->next;
        ticket_open(&(*out)->words->reached);
        (*out)->base.reached = &(*out)->words->reached;
    }
    pthread_mutex_unlock(&stops->lock);
    return status;
}

static void give_back(cuda_stop *s)
{
    pthread_mutex_lock(&s->of->lock);
    s->next = s->of->resumed;
    s->of->resumed = s;
    pthread_mutex_unlock(&s->of->lock);
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
    RING_TRY(cuda_enter(c));
    ring_status status = take(c, &s);
    if (status == RING_OK) {
        status = add_stop(cuda_driver_load(), stream, s);
        if (status != RING_OK) {
            ticket_close(&s->words->reached, RING_OK);
            give_back(s);
        }
    }
    cuda_leave();
    if (status == RING_OK)
        *out = &s->base;
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

static ring_status cuda_owns_stream(const accelerator *a, void *stream, bool *yes)
{
    const cuda_device *c = cuda_device_of(a);
    CUcontext of = NULL;
    RING_TRY(cuda_enter(c));
    const CUresult result = cuda_driver_load()->stream_get_context(stream, &of);
    cuda_leave();
    *yes = result == CUDA_SUCCESS && of == c->context;
    return is_no_stream(result)
               ? RING_OK
               : cuda_check(result, "finding the owner of a stream (cuStreamGetCtx)");
}

/* ---- Graphs --------------------------------------------------------------------------------- */

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
    c->stops = calloc(1, sizeof *c->stops);
    if (c->stops == NULL)
        return fail(RING_ERR_MEMORY, "opening a GPU");
    pthread_mutex_init(&c->stops->lock, NULL);
    RING_TRY(add_page(c->stops));
    c->base.owns_stream = cuda_owns_stream;
    c->base.orders_host = true;
    c->base.stop = cuda_stop_stream;
    c->base.resume = cuda_resume;
    c->base.captures = cuda_captures;
    return RING_OK;
}

void cuda_stops_close(cuda_device *c)
{
    struct cuda_stops *stops = c->stops;
    if (stops == NULL)
        return;
    while (stops->pages != NULL) {
        stop_page *page = stops->pages;
        stops->pages = page->next;
        (void)cuda_driver_load()->host_free(page->words);
        free(page);
    }
    pthread_mutex_destroy(&stops->lock);
    free(stops);
}
