/* SPDX-License-Identifier: Apache-2.0
 * Implements streams of far memory's accelerator: each is a thread that executes requests in
 * order. */
#include "far_parts.h"

#include "base.h"

#include <stdlib.h>

/* Guards all streams and stops. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

struct far_stream {
    struct far_stream *next;
    pthread_t thread;
    far_job *first, **end;
    bool busy, ending;
    int held, let_go; /* far_stream_hold(), far_stream_let_go() */
    bool captured;
};

static far_stream *streams;

/* ---- Stops -------------------------------------------------------------------------- */

static far_stop *stop_of(accelerator_stop *base)
{
    return (far_stop *)(void *)base;
}

void far_stop_init(far_stop *stop)
{
    *stop = (far_stop){.base = {.reached = &stop->reached}};
    ticket_open(&stop->reached);
}

void far_stop_wait(far_stop *stop)
{
    pthread_mutex_lock(&lock);
    while (!stop->resumed)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void far_resume(accelerator_stop *stop)
{
    pthread_mutex_lock(&lock);
    stop_of(stop)->resumed = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* ---- Jobs --------------------------------------------------------------------------- */

static void await_release(far_stream *s)
{
    pthread_mutex_lock(&lock);
    s->held++;
    while (s->let_go < s->held)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* As with a device that writes a word, no thread is woken when the stream stops. */
static void do_job(far_stream *s, far_job *j)
{
    switch (j->kind) {
    case FAR_JOB_WRITE:
        far_write(j->memory, j->from, j->bytes);
        break;
    case FAR_JOB_READ:
        far_read(j->to, j->memory, j->bytes);
        break;
    case FAR_JOB_DELAY:
        clock_sleep(j->seconds);
        break;
    case FAR_JOB_HOLD:
        await_release(s);
        break;
    case FAR_JOB_STOP:
        ticket_close(&j->stop->reached, RING_OK);
        far_stop_wait(j->stop);
        free(j->stop);
        break;
    }
}

static void *run(void *context)
{
    far_stream *s = context;
    pthread_mutex_lock(&lock);
    while (s->first != NULL || !s->ending) {
        far_job *j = s->first;
        if (j == NULL) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        s->first = j->next;
        s->end = s->first != NULL ? s->end : &s->first;
        s->busy = true;
        pthread_mutex_unlock(&lock);
        do_job(s, j);
        free(j);
        pthread_mutex_lock(&lock);
        s->busy = false;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

bool far_stream_add(far_stream *s, const far_job *of)
{
    far_job *j = malloc(sizeof *j);
    if (j == NULL)
        return false;
    *j = *of;
    j->next = NULL;
    pthread_mutex_lock(&lock);
    *s->end = j;
    s->end = &j->next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return true;
}

static void ask(far_stream *s, far_job job)
{
    if (!far_stream_add(s, &job))
        abort();
}

void far_stream_write(far_stream *s, void *memory, const void *from, size_t bytes)
{
    ask(s, (far_job){.kind = FAR_JOB_WRITE, .memory = memory, .from = from, .bytes = bytes});
}

void far_stream_read(far_stream *s, void *to, void *memory, size_t bytes)
{
    ask(s, (far_job){.kind = FAR_JOB_READ, .memory = memory, .to = to, .bytes = bytes});
}

void far_stream_delay(far_stream *s, double seconds)
{
    ask(s, (far_job){.kind = FAR_JOB_DELAY, .seconds = seconds});
}

void far_stream_hold(far_stream *s)
{
    ask(s, (far_job){.kind = FAR_JOB_HOLD});
}

void far_stream_let_go(far_stream *s)
{
    pthread_mutex_lock(&lock);
    s->let_go++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* ---- The engine's requests ------------------------------------------------------------ */

ring_status far_owns_stream(const accelerator *a, void *stream, bool *yes)
{
    pthread_mutex_lock(&lock);
    const far_stream *s = streams;
    while (s != NULL && s != stream)
        s = s->next;
    pthread_mutex_unlock(&lock);
    *yes = s != NULL;
    return RING_OK;
}

ring_status far_stop_stream(const accelerator *a, void *stream, accelerator_stop **out)
{
    far_stop *stop = malloc(sizeof *stop);
    if (stop == NULL)
        return fail(RING_ERR_MEMORY, "stopping a stream of %s", a->name);
    far_stop_init(stop);
    if (!far_stream_add(stream, &(far_job){.kind = FAR_JOB_STOP, .stop = stop})) {
        free(stop);
        return fail(RING_ERR_MEMORY, "stopping a stream of %s", a->name);
    }
    *out = &stop->base;
    return RING_OK;
}

/* ---- Life ----------------------------------------------------------------------------- */

far_stream *far_stream_create(void)
{
    far_stream *s = calloc(1, sizeof *s);
    far_prepare();
    if (s == NULL)
        abort();
    s->end = &s->first;
    pthread_mutex_lock(&lock);
    s->next = streams;
    streams = s;
    pthread_mutex_unlock(&lock);
    if (thread_start(&s->thread, run, s) != 0)
        abort();
    return s;
}

bool far_stream_is_idle(far_stream *s)
{
    pthread_mutex_lock(&lock);
    const bool idle = s->first == NULL && !s->busy;
    pthread_mutex_unlock(&lock);
    return idle;
}

void far_stream_synchronize(far_stream *s)
{
    pthread_mutex_lock(&lock);
    while (s->first != NULL || s->busy)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void far_stream_destroy(far_stream *s)
{
    pthread_mutex_lock(&lock);
    far_stream **at = &streams;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    s->ending = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(s->thread, NULL);
    free(s);
}

/* ---- Captures ------------------------------------------------------------------------- */

static void set_captured(far_stream *s, bool captured)
{
    pthread_mutex_lock(&lock);
    s->captured = captured;
    pthread_mutex_unlock(&lock);
}

void far_capture_begin(far_stream *s)
{
    set_captured(s, true);
}

void far_capture_end(far_stream *s)
{
    set_captured(s, false);
}

ring_status far_captures(const accelerator *a, void *stream, bool *captured)
{
    const far_stream *s = stream;
    pthread_mutex_lock(&lock);
    *captured = s->captured;
    pthread_mutex_unlock(&lock);
    return RING_OK;
}
