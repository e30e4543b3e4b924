/* SPDX-License-Identifier: Apache-2.0
 * The threads of a block as fibers of one thread of the system. They run one after the other, each
 * until it ends, comes to a barrier or pauses; when all have come to the barrier, a new pass
 * begins.
 *
 * ThreadSanitizer is told that a change of fibers orders nothing: only barriers and atomics do. */
#include "emulated_kernel.h"
#include "fiber_sanitizers.h"
#include "fiber_stack.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 256 << 10, MOST_THREADS = 1024 };

typedef enum fiber_state { UNSTARTED, READY, AT_BARRIER, ENDED } fiber_state;

typedef struct fiber {
    fiber_stack stack;
    fiber_marks marks;
    unsigned thread;
} fiber;

typedef struct block {
    const emulated_launch *launch;
    unsigned index;
    unsigned *order;         /* [threads] of the present pass */
    unsigned at;             /* in it */
    fiber_state *states;     /* [threads] */
    fiber **on;              /* [threads] the fiber of one that has started */
    fiber *fibers, *running; /* [threads] */
    unsigned used;           /* of those */
    fiber scheduler;
    bool trapped;
    uint64_t passed;   /* orders what threads did before a barrier and after it */
    bool any, was_any; /* of fiber_any(): at the next barrier, and at the last one */
} block;

static _Thread_local block *here;
static _Thread_local struct {
    char *at;
    size_t bytes;
} stacks; /* kept for the next block of the thread, since mapping takes long */
static int wanted_order;
static unsigned wanted_seed;
static unsigned delay_most, delay_seed;

void emulated_set_order(int order, unsigned seed)
{
    wanted_order = order;
    wanted_seed = seed;
}

void emulated_set_delay(unsigned most_us, unsigned seed)
{
    __atomic_store_n(&delay_seed, seed, __ATOMIC_RELAXED);
    __atomic_store_n(&delay_most, most_us, __ATOMIC_RELAXED);
}

_Noreturn static void misuse(const char *what, const block *b)
{
    fprintf(stderr, "emulated GPU: kernel %s, block %u: %s\n", b->launch->kernel->name, b->index,
            what);
    abort();
}

/* Threads that go on see what all did before they came here. The sanitizer sees these two; without
 * it, the fibers of a thread need no atomics.
 */
__attribute__((noinline)) static void come_to(uint64_t *passed)
{
    if (FIBER_FOR_EACH)
        __atomic_fetch_add(passed, 1, __ATOMIC_RELEASE);
}

__attribute__((noinline)) static void go_on_from(const uint64_t *passed)
{
    (void)__atomic_load_n(passed, __ATOMIC_ACQUIRE);
}

/* ---- Changing fibers ------------------------------------------------------------------ */

UNSEEN static void change_to(fiber *from, fiber *to, bool ends)
{
    here->running = to;
    fiber_marks_leave(&from->marks, &to->marks, ends);
    fiber_stack_change(&from->stack, &to->stack);
    fiber_marks_enter(&from->marks, from == &here->scheduler ? NULL : &here->scheduler.marks);
}

UNSEEN static void yield_as(fiber_state state)
{
    fiber *me = here->running;
    here->states[me->thread] = state;
    change_to(me, &here->scheduler, false);
}

/* @return the next thread of the pass if it has still to start; then this fiber runs it, too. */
UNSEEN static bool take_next(block *b, fiber *me)
{
    const unsigned next = b->at + 1;
    if ((FIBER_FOR_EACH && b->launch->judged) || next == b->launch->block ||
        b->states[b->order[next]] != UNSTARTED)
        return false;
    b->at = next;
    me->thread = b->order[next];
    b->on[me->thread] = me;
    return true;
}

UNSEEN static void run_fiber(void)
{
    block *b = here;
    fiber *me = b->running;
    fiber_marks_enter(&me->marks, &b->scheduler.marks);
    do {
        b->launch->kernel->body(b->launch->args);
        come_to(&b->passed);
        b->states[me->thread] = ENDED;
    } while (take_next(b, me));
    change_to(me, &b->scheduler, true);
}

UNSEEN static fiber *start_fiber(block *b, unsigned thread)
{
    fiber *f = &b->fibers[b->used];
    char *stack = stacks.at + (size_t)b->used++ * STACK_BYTES;
    fiber_stack_new(&f->stack, stack, STACK_BYTES, run_fiber);
    f->thread = thread;
    fiber_marks_new(&f->marks, stack, STACK_BYTES);
    b->on[thread] = f;
    return f;
}

/* ---- Passes --------------------------------------------------------------------------- */

static void draw_order(block *b, unsigned *seed)
{
    const unsigned n = b->launch->block;
    for (unsigned i = 0; i < n; i++)
        b->order[i] = wanted_order == EMULATED_REVERSE ? n - 1 - i : i;
    for (unsigned i = n; wanted_order == EMULATED_RANDOM && i > 1; i--) {
        const unsigned other = (unsigned)rand_r(seed) % i, kept = b->order[i - 1];
        b->order[i - 1] = b->order[other];
        b->order[other] = kept;
    }
}

UNSEEN static void run_pass(block *b)
{
    for (b->at = 0; b->at < b->launch->block && !b->trapped; b->at++) {
        const unsigned thread = b->order[b->at];
        const fiber_state state = b->states[thread];
        if (state == UNSTARTED || state == READY)
            change_to(&b->scheduler, state == UNSTARTED ? start_fiber(b, thread) : b->on[thread],
                      false);
    }
}

UNSEEN static unsigned count(const block *b, fiber_state state)
{
    unsigned found = 0;
    for (unsigned i = 0; i < b->launch->block; i++)
        found += b->states[i] == state;
    return found;
}

/* @return false: all have ended. */
UNSEEN static bool open_barrier(block *b)
{
    const unsigned waiting = count(b, AT_BARRIER), ended = count(b, ENDED);
    if (ended == b->launch->block)
        return false;
    if (waiting + ended < b->launch->block) {
        sched_yield(); /* some pause: for another block, it may be */
        return true;
    }
    if (ended > 0)
        misuse("a barrier that some threads of the block have not come to, for they ended", b);
    b->was_any = b->any;
    b->any = false;
    for (unsigned i = 0; i < b->launch->block; i++)
        b->states[i] = READY;
    return true;
}

static void *need(void *memory)
{
    if (memory == NULL || memory == MAP_FAILED) {
        fprintf(stderr, "emulated GPU: no memory for the threads of a block\n");
        abort();
    }
    return memory;
}

static void free_stacks(void)
{
    if (stacks.at != NULL)
        munmap(stacks.at, stacks.bytes);
    stacks.at = NULL;
    stacks.bytes = 0;
}

static void make_stacks(size_t bytes)
{
    if (stacks.bytes >= bytes)
        return;
    free_stacks();
    stacks.at = need(mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    stacks.bytes = bytes;
}

bool emulated_block_run(const emulated_launch *launch, unsigned block_index)
{
    const size_t n = launch->block;
    unsigned seed = wanted_seed + block_index;
    block b = {.launch = launch, .index = block_index};
    if (n == 0 || n > MOST_THREADS)
        misuse("a block of no threads, or of more than 1024", &b);
    b.order = need(calloc(n, sizeof *b.order));
    b.states = need(calloc(n, sizeof *b.states));
    b.on = need(calloc(n, sizeof *b.on));
    b.fibers = need(calloc(n, sizeof *b.fibers));
    make_stacks(n * STACK_BYTES);
    here = &b;
    fiber_marks_main(&b.scheduler.marks);
    do {
        draw_order(&b, &seed);
        run_pass(&b);
    } while (!b.trapped && open_barrier(&b));
    go_on_from(&b.passed);
    for (unsigned i = 0; i < b.used; i++)
        fiber_marks_free(&b.fibers[i].marks, !b.trapped);
    here = NULL;
    if (b.trapped)
        free_stacks(); /* with frames of threads that have not ended */
    free(b.fibers);
    free(b.on);
    free(b.states);
    free(b.order);
    return !b.trapped;
}

/* ---- A launch of tests ------------------------------------------------------------------- */

typedef struct block_thread {
    pthread_t id;
    const emulated_launch *launch;
    unsigned index;
    bool ended_well;
} block_thread;

static void *run_block(void *arg)
{
    block_thread *t = arg;
    t->ended_well = emulated_block_run(t->launch, t->index);
    free_stacks();
    fiber_marks_free_kept();
    return NULL;
}

bool emulated_launch_run(const emulated_launch *launch)
{
    bool well = true;
    block_thread *threads = need(calloc(launch->grid, sizeof *threads));
    for (unsigned i = 0; i < launch->grid; i++) {
        threads[i] = (block_thread){.launch = launch, .index = i};
        if (pthread_create(&threads[i].id, NULL, run_block, &threads[i]) != 0)
            need(NULL);
    }
    for (unsigned i = 0; i < launch->grid; i++) {
        pthread_join(threads[i].id, NULL);
        well = well && threads[i].ended_well;
    }
    free(threads);
    return well;
}

/* ---- For kernels -------------------------------------------------------------------------- */

UNSEEN unsigned fiber_thread_index(void)
{
    return here->running->thread;
}

UNSEEN unsigned fiber_thread_count(void)
{
    return here->launch->block;
}

UNSEEN unsigned fiber_block_index(void)
{
    return here->index;
}

UNSEEN unsigned fiber_block_count(void)
{
    return here->launch->grid;
}

UNSEEN void fiber_barrier(void)
{
    block *b = here;
    come_to(&b->passed);
    yield_as(AT_BARRIER);
    go_on_from(&b->passed);
}

UNSEEN bool fiber_any(bool mine)
{
    here->any |= mine;
    fiber_barrier();
    return here->was_any;
}

UNSEEN void fiber_pause(void)
{
    yield_as(READY);
}

uint64_t fiber_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* One of eight words. */
void fiber_delay(void)
{
    static _Thread_local unsigned state;
    const unsigned most = __atomic_load_n(&delay_most, __ATOMIC_RELAXED);
    if (most == 0)
        return;
    unsigned own = __atomic_load_n(&state, __ATOMIC_RELAXED); /* all fibers of a thread have it */
    if (own == 0)
        own = __atomic_add_fetch(&delay_seed, 1, __ATOMIC_RELAXED);
    const unsigned drawn = (unsigned)rand_r(&own);
    __atomic_store_n(&state, own, __ATOMIC_RELAXED);
    if (drawn % 8 == 0)
        usleep(drawn / 8 % most);
}

static uint64_t releases;

void fiber_count_release(void)
{
    __atomic_fetch_add(&releases, 1, __ATOMIC_RELEASE);
}

uint64_t emulated_releases(void)
{
    return __atomic_load_n(&releases, __ATOMIC_ACQUIRE);
}

UNSEEN void emulated_trap(void)
{
    here->trapped = true;
    come_to(&here->passed);
    change_to(here->running, &here->scheduler, true);
    abort(); /* never resumed */
}

void emulated_check_aligned(const void *at, size_t bytes)
{
    if ((uintptr_t)at % bytes != 0)
        misuse("an access of a thread that is not aligned to its size", here);
}
