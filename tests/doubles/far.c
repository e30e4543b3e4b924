/* SPDX-License-Identifier: Apache-2.0
 * Far memory is one file, mapped twice: without access where users see it, and for the
 * accelerator. */
#include "far.h"

#include "accelerator.h"
#include "base.h"
#include "regions.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 30 };

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
    char *seen, *real; /* the same pages */
    size_t used;
    fold_job *first, **end;
    bool busy; /* with the job that was first */
    double delay;
} far = {.lock = PTHREAD_MUTEX_INITIALIZER,
         .asked = PTHREAD_COND_INITIALIZER,
         .idle = PTHREAD_COND_INITIALIZER,
         .end = &far.first};

/* ---- The accelerator ---------------------------------------------------------------- */

static void *real_address(const void *at)
{
    const char *seen = at;
    return seen >= far.seen && seen < far.seen + MOST_BYTES ? far.real + (seen - far.seen)
                                                            : (void *)(uintptr_t)at;
}

static void translate(kernel_operand *operands, int count)
{
    for (int i = 0; i < count; i++)
        operands[i].data = real_address(operands[i].data);
}

static void run_job(fold_job *j, double delay)
{
    if (delay > 0)
        clock_sleep(delay);
    else
        sched_yield(); /* whoever asked goes on first */
    kernel_fold(j->outs, j->out_count, j->ins, j->in_count, j->count, j->dtype, j->op, j->divisor);
    if (j->over != NULL)
        ticket_close(j->over, RING_OK);
    ticket_wake_all();
    free(j);
}

static void *run(void *unused)
{
    (void)unused;
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
        pthread_mutex_unlock(&far.lock);
        run_job(j, delay);
        pthread_mutex_lock(&far.lock);
    }
    return NULL;
}

static ring_status far_fold(const accelerator *a, const kernel_operand *outs, int out_count,
                            const kernel_operand *ins, int in_count, size_t count, ring_dtype dtype,
                            ring_op op, int divisor, ticket *over)
{
    fold_job *j = malloc(sizeof *j);
    (void)a;
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
    *far.end = j;
    far.end = &j->next;
    pthread_cond_signal(&far.asked);
    pthread_mutex_unlock(&far.lock);
    return RING_OK;
}

static void far_settle(const accelerator *a)
{
    (void)a;
    pthread_mutex_lock(&far.lock);
    while (far.first != NULL || far.busy)
        pthread_cond_wait(&far.idle, &far.lock);
    pthread_mutex_unlock(&far.lock);
}

static const accelerator here = {.name = "far", .fold = far_fold, .settle = far_settle};
static const accelerator elsewhere = {.name = "elsewhere", .fold = far_fold, .settle = far_settle};

void far_delay(double seconds)
{
    pthread_mutex_lock(&far.lock);
    far.delay = seconds;
    pthread_mutex_unlock(&far.lock);
}

/* ---- Its memory --------------------------------------------------------------------- */

static void set_up(void)
{
    const int file = memfd_create("far", MFD_CLOEXEC);
    pthread_t thread;
    if (file < 0 || ftruncate(file, MOST_BYTES) != 0)
        abort();
    far.seen = mmap(NULL, MOST_BYTES, PROT_NONE, MAP_SHARED, file, 0);
    far.real = mmap(NULL, MOST_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (far.seen == MAP_FAILED || far.real == MAP_FAILED || thread_start(&thread, run, NULL) != 0)
        abort();
    pthread_detach(thread);
}

/* Addresses are not given twice: what was freed may be named by a late mistake. When they are used
 * up they start again. */
static void *allocate(size_t bytes, const accelerator *by)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const size_t whole = (bytes + 4096) / 4096 * 4096;
    pthread_once(&once, set_up);
    pthread_mutex_lock(&far.lock);
    far.used = far.used + whole > MOST_BYTES ? 0 : far.used;
    char *at = far.seen + far.used;
    far.used += whole;
    pthread_mutex_unlock(&far.lock);
    if (region_add_device(at, whole, by) != RING_OK)
        abort();
    return at;
}

void *far_alloc(size_t bytes)
{
    return allocate(bytes, &here);
}

void *far_alloc_elsewhere(size_t bytes)
{
    return allocate(bytes, &elsewhere);
}

void far_free(void *memory)
{
    if (region_remove(memory) != RING_OK)
        abort();
}

void far_write(void *memory, const void *from, size_t bytes)
{
    memcpy(real_address(memory), from, bytes);
}

void far_read(void *to, const void *memory, size_t bytes)
{
    memcpy(to, real_address(memory), bytes);
}
