/* SPDX-License-Identifier: Apache-2.0
 * Far memory is mapped three times: without access where users see it, for the accelerator, and as
 * adapters see it. */
#include "far.h"

#include "accelerator.h"
#include "base.h"
#include "regions.h"

#include <fcntl.h>
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
    char *seen, *real, *bus; /* for users, for the accelerator, for adapters */
    int file;                /* the last */
    size_t used;
    fold_job *first, **end;
    bool busy; /* with the job that was first */
    double delay;
    unsigned ways;
    bool fails_flushes;
    pci_place place;
    far_counts counts;
} far = {.lock = PTHREAD_MUTEX_INITIALIZER,
         .asked = PTHREAD_COND_INITIALIZER,
         .idle = PTHREAD_COND_INITIALIZER,
         .end = &far.first,
         .ways = FAR_DMABUF};

/* ---- The accelerator ---------------------------------------------------------------- */

static bool is_far(const char *at, const char *base)
{
    return at >= base && at < base + MOST_BYTES;
}

static void *real_address(const void *at)
{
    const char *seen = at;
    return is_far(seen, far.seen) ? far.real + (seen - far.seen) : (void *)(uintptr_t)at;
}

static void show_to_adapters(const void *real, size_t bytes)
{
    const char *from = real;
    if (is_far(from, far.real))
        memcpy(far.bus + (from - far.real), from, bytes);
}

static size_t bytes_of(const kernel_operand *operand, ring_dtype dtype, size_t count)
{
    const bool wide = operand->accumulator && (dtype == RING_FLOAT16 || dtype == RING_BFLOAT16);
    return count * (wide ? sizeof(float) : ring_dtype_size(dtype));
}

static void count_host_bytes(const kernel_operand *operands, int count, ring_dtype dtype,
                             size_t elements)
{
    for (int i = 0; i < count; i++)
        if (!is_far(operands[i].data, far.seen))
            far.counts.host_bytes += bytes_of(&operands[i], dtype, elements);
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
    for (int i = 0; i < j->out_count; i++)
        show_to_adapters(j->outs[i].data, bytes_of(&j->outs[i], j->dtype, j->count));
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
    count_host_bytes(outs, out_count, dtype, count);
    count_host_bytes(ins, in_count, dtype, count);
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

static ring_status far_share(const accelerator *a, void *base, size_t bytes, accelerator_share *out)
{
    (void)bytes;
    pthread_mutex_lock(&far.lock);
    const unsigned ways = far.ways;
    far.counts.shares++;
    pthread_mutex_unlock(&far.lock);
    if (ways == 0)
        return fail(RING_ERR_UNSUPPORTED, "%s shares nothing", a->name);
    *out = (accelerator_share){.dmabuf = -1,
                               .offset = (uint64_t)((char *)base - far.seen),
                               .by_address = (ways & FAR_BY_ADDRESS) != 0};
    if (ways & FAR_DMABUF)
        out->dmabuf = fcntl(far.file, F_DUPFD_CLOEXEC, 0);
    return RING_OK;
}

static ring_status far_flush(const accelerator *a, void *at, size_t bytes)
{
    (void)a;
    const size_t offset = (size_t)((char *)at - far.seen);
    pthread_mutex_lock(&far.lock);
    const bool fails = far.fails_flushes;
    far.counts.flushes++;
    far.counts.flushed_bytes += bytes;
    pthread_mutex_unlock(&far.lock);
    if (fails)
        return fail(RING_ERR_SYSTEM, "the flush failed");
    memcpy(far.real + offset, far.bus + offset, bytes);
    return RING_OK;
}

static const pci_place *place_of(const accelerator *a)
{
    (void)a;
    return &far.place;
}

static accelerator here = {
    .name = "far", .fold = far_fold, .settle = far_settle, .share = far_share, .flush = far_flush};
static const accelerator elsewhere = {.name = "elsewhere", .fold = far_fold, .settle = far_settle};

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
    here.place = path != NULL ? place_of : NULL;
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

/* ---- Its memory --------------------------------------------------------------------- */

static char *map_far(int protection, int flags, int file)
{
    void *at = mmap(NULL, MOST_BYTES, protection, flags | MAP_NORESERVE, file, 0);
    if (at == MAP_FAILED)
        abort();
    return at;
}

static void set_up(void)
{
    pthread_t thread;
    far.file = memfd_create("far", MFD_CLOEXEC);
    if (far.file < 0 || ftruncate(far.file, MOST_BYTES) != 0)
        abort();
    far.seen = map_far(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    far.real = map_far(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    far.bus = map_far(PROT_READ | PROT_WRITE, MAP_SHARED, far.file);
    if (thread_start(&thread, run, NULL) != 0)
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
    show_to_adapters(real_address(memory), bytes);
}

void far_read(void *to, const void *memory, size_t bytes)
{
    memcpy(to, real_address(memory), bytes);
}

void *far_at_adapters(void *memory)
{
    return far.bus + ((char *)memory - far.seen);
}
