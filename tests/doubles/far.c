/* SPDX-License-Identifier: Apache-2.0
 * Simulates the accelerator of far memory: it folds in order and late, and shares memory with
 * adapters. */
#include "far_parts.h"

#include "accelerators.h"
#include "base.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A fold that was asked for. */
typedef struct fold_job {
    struct fold_job *next;
    kernel_operand outs[KERNEL_MAX_OUTPUTS], ins[KERNEL_MAX_INPUTS];
    int out_count, in_count, divisor;
    size_t count;
    ring_dtype dtype;
    ring_op op;
    ticket *over;
} fold_job;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t asked, idle;
    fold_job *first, **end;
    fold_job *complete; /* jobs whose tickets reap() closes */
    bool busy;          /* with the job that was first */
    double delay;
    unsigned ways;
    bool fails_flushes;
    const char *error;
    pci_place place;
    far_counts counts;
} far = {.lock = PTHREAD_MUTEX_INITIALIZER,
         .asked = PTHREAD_COND_INITIALIZER,
         .idle = PTHREAD_COND_INITIALIZER,
         .end = &far.first,
         .ways = FAR_DMABUF};

/* ---- The accelerator ---------------------------------------------------------------- */

static size_t bytes_of(const kernel_operand *operand, ring_dtype dtype, size_t count)
{
    const bool wide = operand->accumulator && (dtype == RING_FLOAT16 || dtype == RING_BFLOAT16);
    return count * (wide ? sizeof(float) : ring_dtype_size(dtype));
}

/* Ends the process if an operand is not where the library says. */
static void count_host_bytes(const kernel_operand *operands, int count, ring_dtype dtype,
                             size_t elements)
{
    for (int i = 0; i < count; i++) {
        if (far_has(operands[i].data) != operands[i].on_device) {
            fprintf(stderr, "far: operand %d of a fold is %sin far memory\n", i,
                    operands[i].on_device ? "not " : "");
            abort();
        }
        if (!operands[i].on_device)
            far.counts.host_bytes += bytes_of(&operands[i], dtype, elements);
    }
}

static void translate(kernel_operand *operands, int count)
{
    for (int i = 0; i < count; i++)
        operands[i].data = far_real(operands[i].data);
}

static void run_job(fold_job *j, double delay)
{
    if (delay > 0)
        clock_sleep(delay);
    else
        sched_yield(); /* the thread that asked continues first */
    kernel_fold(j->outs, j->out_count, j->ins, j->in_count, j->count, j->dtype, j->op, j->divisor);
    for (int i = 0; i < j->out_count; i++)
        far_show(j->outs[i].data, bytes_of(&j->outs[i], j->dtype, j->count));
}

/* As with a GPU that writes a word, the end of a fold wakes no thread. */
static void reap(const accelerator *a)
{
    pthread_mutex_lock(&far.lock);
    while (far.complete != NULL) {
        fold_job *j = far.complete;
        far.complete = j->next;
        if (j->over != NULL)
            ticket_close(j->over, RING_OK);
        free(j);
    }
    pthread_mutex_unlock(&far.lock);
}

static void *run(void *unused)
{
    pthread_mutex_lock(&far.lock);
    for (;;) {
        while (far.first == NULL) {
            far.busy = false;
            pthread_cond_broadcast(&far.idle);
            pthread_cond_wait(&far.asked, &far.lock);
        }
        fold_job *j = far.first;
        far.first = j->next;
        far.end = far.first != NULL ? far.end : &far.first;
        far.busy = true;
        const double delay = far.delay;
        const bool broken = far.error != NULL;
        pthread_mutex_unlock(&far.lock);
        if (!broken)
            run_job(j, delay);
        pthread_mutex_lock(&far.lock);
        if (broken) {
            free(j);
        } else {
            j->next = far.complete;
            far.complete = j;
        }
    }
    return NULL;
}

static ring_status fold(const accelerator *a, const kernel_operand *outs, int out_count,
                        const kernel_operand *ins, int in_count, size_t count, ring_dtype dtype,
                        ring_op op, int divisor, ticket *over)
{
    fold_job *j = malloc(sizeof *j);
    if (j == NULL)
        return fail(RING_ERR_MEMORY, "asking the accelerator for a fold");
    *j = (fold_job){.out_count = out_count,
                    .in_count = in_count,
                    .count = count,
                    .dtype = dtype,
                    .op = op,
                    .divisor = divisor,
                    .over = over};
    memcpy(j->outs, outs, (size_t)out_count * sizeof *outs);
    memcpy(j->ins, ins, (size_t)in_count * sizeof *ins);
    translate(j->outs, out_count);
    translate(j->ins, in_count);
    if (over != NULL)
        ticket_open(over);
    pthread_mutex_lock(&far.lock);
    count_host_bytes(outs, out_count, dtype, count);
    count_host_bytes(ins, in_count, dtype, count);
    *far.end = j;
    far.end = &j->next;
    pthread_cond_signal(&far.asked);
    pthread_mutex_unlock(&far.lock);
    return RING_OK;
}

static void settle(const accelerator *a)
{
    pthread_mutex_lock(&far.lock);
    while (far.first != NULL || far.busy)
        pthread_cond_wait(&far.idle, &far.lock);
    pthread_mutex_unlock(&far.lock);
    reap(a);
}

static ring_status share(const accelerator *a, void *base, size_t bytes, accelerator_share *out)
{
    pthread_mutex_lock(&far.lock);
    const unsigned ways = far.ways;
    far.counts.shares++;
    pthread_mutex_unlock(&far.lock);
    if (ways == 0)
        return fail(RING_ERR_UNSUPPORTED, "%s shares nothing", a->name);
    *out = (accelerator_share){.dmabuf = -1,
                               .offset = far_offset(base),
                               .by_address = (ways & FAR_BY_ADDRESS) != 0};
    if (ways & FAR_DMABUF)
        out->dmabuf = fcntl(far_views.file, F_DUPFD_CLOEXEC, 0);
    return RING_OK;
}

static ring_status flush(const accelerator *a, void *at, size_t bytes)
{
    const size_t offset = far_offset(at);
    pthread_mutex_lock(&far.lock);
    const bool fails = far.fails_flushes;
    far.counts.flushes++;
    far.counts.flushed_bytes += bytes;
    pthread_mutex_unlock(&far.lock);
    if (fails)
        return fail(RING_ERR_SYSTEM, "the flush failed");
    memcpy(far_views.real + offset, far_views.bus + offset, bytes);
    return RING_OK;
}

static ring_status health(const accelerator *a)
{
    pthread_mutex_lock(&far.lock);
    const char *error = far.error;
    pthread_mutex_unlock(&far.lock);
    return error == NULL ? RING_OK : fail(RING_ERR_SYSTEM, "%s", error);
}

static const pci_place *place_of(const accelerator *a)
{
    return &far.place;
}

accelerator far_here = {.name = "far",
                        .fold = fold,
                        .reap = reap,
                        .settle = settle,
                        .share = share,
                        .flush = flush,
                        .owns = far_owns,
                        .owns_stream = far_owns_stream,
                        .orders_host = true,
                        .stop = far_stop_stream,
                        .resume = far_resume,
                        .captures = far_captures,
                        .health = health};
const accelerator far_elsewhere = {.name = "elsewhere",
                                   .fold = fold,
                                   .reap = reap,
                                   .settle = settle};

void far_start(void)
{
    pthread_t thread;
    if (accelerators_add(&far_here) != RING_OK || accelerators_add(&far_elsewhere) != RING_OK ||
        thread_start(&thread, run, NULL) != 0)
        abort();
    pthread_detach(thread);
}

void far_delay(double seconds)
{
    pthread_mutex_lock(&far.lock);
    far.delay = seconds;
    pthread_mutex_unlock(&far.lock);
}

void far_share_by(unsigned ways)
{
    pthread_mutex_lock(&far.lock);
    far.ways = ways;
    pthread_mutex_unlock(&far.lock);
}

void far_place(const char *path)
{
    far.place.numa = -1;
    (void)text_format(far.place.path, sizeof far.place.path, "%s", path != NULL ? path : "");
    far_here.place = path != NULL ? place_of : NULL;
}

void far_break(const char *error)
{
    pthread_mutex_lock(&far.lock);
    far.error = error;
    pthread_mutex_unlock(&far.lock);
}

void far_fail_flushes(bool fail)
{
    pthread_mutex_lock(&far.lock);
    far.fails_flushes = fail;
    pthread_mutex_unlock(&far.lock);
}

void far_counters(far_counts *out)
{
    pthread_mutex_lock(&far.lock);
    *out = far.counts;
    pthread_mutex_unlock(&far.lock);
}
