/* SPDX-License-Identifier: Apache-2.0
 * Threads of the host that wait in a call: for how much may be pending in a stream, for the lock
 * that the driver holds while some calls block, and with a deadline that ends the process. */
#include "gpu.h"

#include <signal.h>
#include <stdio.h>

/* A stream of an H100 (driver 580) accepted this while it was stopped at a wait: 1,020 ops after
 * the wait, or 55 replays of a graph with a host function. */
enum { MOST_PENDING = 1 + 1020, MOST_PENDING_FUNCTIONS = 55 };

_Thread_local const char *call_name = "a test";

/* ---- The driver's lock ---- */

static struct {
    const char *call; /* of the holder; NULL: it is free */
    int stream;
} driver_lock;
static _Thread_local bool holds_driver_lock;

bool driver_lock_is_free(void)
{
    return driver_lock.call == NULL || holds_driver_lock;
}

void driver_lock_take(int stream)
{
    driver_lock.call = call_name;
    driver_lock.stream = stream;
    holds_driver_lock = true;
}

void driver_lock_give(void)
{
    if (!holds_driver_lock)
        return;
    holds_driver_lock = false;
    driver_lock.call = NULL;
    gpu_ring(BELL_HOST);
}

/* ---- Deadlines ---- */

static void print_place(int slot)
{
    static const char *const names[] = {[OP_COPY] = "a copy",
                                        [OP_SET] = "a memset",
                                        [OP_WRITE_VALUE] = "the write of a word",
                                        [OP_WAIT_VALUE] = "a wait for a word",
                                        [OP_RECORD] = "a record of an event",
                                        [OP_WAIT] = "a wait for an event",
                                        [OP_HOST] = "a host function",
                                        [OP_LAUNCH] = "a kernel",
                                        [OP_FREE] = "a free"};
    const gpu_stream *s = &gpu->streams[slot];
    const op *o = &gpu->ops[s->first];
    fprintf(stderr, "fake_cuda:   stream %d, hardware queue %d: %d op%s, the first is %s", slot,
            s->queue, s->pending, s->pending == 1 ? "" : "s", names[o->kind]);
    if (o->kind == OP_LAUNCH)
        fprintf(stderr, " (%s)", o->launch.kernel->name);
    if (o->kind == OP_WAIT_VALUE)
        fprintf(stderr, " (%llu at %#llx)", (unsigned long long)o->value,
                (unsigned long long)o->to);
    if (o->kind == OP_WAIT)
        fprintf(stderr, " (of stream %d)", (int)o->from);
    const op *holder = queue_holder(slot, o);
    if (holder != NULL)
        fprintf(stderr, ", held up by a copy of stream %d", holder->stream);
    fprintf(stderr, "\n");
}

_Noreturn static void end_at_deadline(const host_wait *w)
{
    fprintf(stderr, "fake_cuda: %s() has waited for %.0f s (FAKE_CUDA_DEADLINE) ", call_name,
            gpu_is.deadline);
    if (w->stream >= 0)
        fprintf(stderr, "for stream %d ", w->stream);
    fprintf(stderr, "%s\n", w->what);
    if (driver_lock.call != NULL && driver_lock.stream >= 0)
        fprintf(stderr, "fake_cuda:   %s() for stream %d holds the driver's lock\n",
                driver_lock.call, driver_lock.stream);
    else if (driver_lock.call != NULL)
        fprintf(stderr, "fake_cuda:   %s() holds the driver's lock\n", driver_lock.call);
    for (int i = 0; i < MOST_STREAMS; i++)
        if (gpu->streams[i].first >= 0)
            print_place(i);
    misuse("a call waits for ever (FAKE_CUDA_DEADLINE)");
}

host_wait host_wait_begin(int stream, const char *what)
{
    return (host_wait){.what = what, .stream = stream, .since = gpu_now()};
}

void host_wait_on(const host_wait *w)
{
    gpu_await_briefly(BELL_HOST);
    if (__atomic_load_n(&gpu->error, __ATOMIC_SEQ_CST) != 0)
        return;
    if (kill(gpu->pid, 0) != 0)
        misuse("the GPU process has ended");
    if (gpu_now() - w->since > gpu_is.deadline)
        end_at_deadline(w);
}

/* ---- Appending ---- */

/* Graphs with host functions have a limit of their own. A stream where nothing is pending accepts
 * any graph. */
static bool is_within_limits(const gpu_stream *s, int count, int functions)
{
    if (!gpu_is.limits)
        return true;
    if (functions > 0)
        return s->functions == 0 || s->functions + functions <= MOST_PENDING_FUNCTIONS;
    return s->pending == 0 || s->pending + count <= MOST_PENDING;
}

static const char *text_of(bool is_locked, bool has_ops)
{
    return is_locked ? "until the driver's lock is free"
           : has_ops ? "until fewer of its ops are pending"
                     : "until the double has room for more ops";
}

/* A launch of a graph with host functions holds the driver's lock while it waits; other calls wait
 * without it. */
void append_wait(int slot, const op *const *ops, int count, appender who)
{
    host_wait w = host_wait_begin(slot, NULL);
    int functions = 0;
    for (int i = 0; i < count; i++)
        functions += who == APPEND_REPLAY && ops[i]->kind == OP_HOST;
    while (gpu->error == 0) {
        const bool is_locked = who != APPEND_OWN && !driver_lock_is_free();
        const bool has_ops = gpu->ops_left >= count;
        if (!is_locked && has_ops &&
            (who == APPEND_OWN || is_within_limits(&gpu->streams[slot], count, functions)))
            return;
        if (!is_locked && has_ops && functions > 0)
            driver_lock_take(slot);
        w.what = text_of(is_locked, has_ops);
        host_wait_on(&w);
    }
}
