/* SPDX-License-Identifier: Apache-2.0
 * Virtual time, and fibers for threads. Only a wait changes fibers, so locks are never contended
 * except across one; every wake comes some microseconds late, in an order that is drawn. */
#include "simulated_ranks.h"

#include "doubles/cuda/fiber_sanitizers.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

enum { FIBERS = 64, STACK_BYTES = 512 << 10, FAIL_BYTES = 1024, MOST_EVENTS = 400000 };

typedef enum fiber_state { FREE, WAITING, RUNNING, ENDED } fiber_state;

typedef struct fiber {
    ucontext_t context;
    fiber_marks marks;
    fiber_state state;
    int rank;
    void (*body)(void *);
    void *argument;
    const void *channel;
    uint64_t wait; /* which one: events of earlier ones are void */
    bool timed_out, held;
    char fail_text[FAIL_BYTES]; /* of this thread, while another runs */
} fiber;

typedef struct event {
    double when;
    uint64_t order;
    void (*action)(void *object, uint64_t number);
    void *object;
    uint64_t number;
} event;

static struct {
    double now;
    uint64_t draws, orders, events;
    fiber fibers[FIBERS];
    int used, loaded; /* loaded: the rank whose rooms' state is in place */
    fiber *running;
    fiber scheduler;
    char *stacks;
    event *heap;
    size_t count, room;
    bool ended[SIM_RANKS], stopped[SIM_RANKS];
    bool for_good[SIM_RANKS]; /* stopped so */
    unsigned calls[SIM_RANKS];
    void (*on_call)(int rank, unsigned calls);
} sim;

bool sim_traces;

void *__real_realloc(void *old, size_t bytes);

void sim_trace(const char *format, ...)
{
    va_list args;
    if (!sim_traces)
        return;
    fprintf(stdout, "%10.6f r%-2d ", sim.now, sim_rank());
    va_start(args, format);
    vfprintf(stdout, format, args);
    va_end(args);
    fputc('\n', stdout);
}

/* ---- Draws ------------------------------------------------------------------------------ */

void sim_seed(uint64_t seed)
{
    sim.draws = seed * 0xd1342543de82ef95u + 1;
}

uint32_t sim_draw(uint32_t below)
{
    uint64_t x = sim.draws += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((x >> 32) * below >> 32);
}

double sim_draw_seconds(double least, double most)
{
    double top = least;
    while (top < most && sim_draw(3) != 0)
        top *= 2;
    top = top < most ? top : most;
    return least + (top - least) * (double)sim_draw(1u << 20) / (1 << 20);
}

bool sim_chance(unsigned per_mille)
{
    return sim_draw(1000) < per_mille;
}

/* ---- Events ------------------------------------------------------------------------------ */

static bool is_before(const event *a, const event *b)
{
    return a->when < b->when || (a->when <= b->when && a->order < b->order);
}

static void swap_events(size_t a, size_t b)
{
    const event kept = sim.heap[a];
    sim.heap[a] = sim.heap[b];
    sim.heap[b] = kept;
}

void sim_at(double when, void (*action)(void *object, uint64_t number), void *object,
            uint64_t number)
{
    if (when >= SIM_NEVER)
        return;
    if (sim.count == sim.room) {
        sim.room = sim.room > 0 ? 2 * sim.room : 256;
        sim.heap = __real_realloc(sim.heap, sim.room * sizeof *sim.heap);
        if (sim.heap == NULL)
            abort();
    }
    size_t at = sim.count++;
    sim.heap[at] = (event){when > sim.now ? when : sim.now, sim.orders++, action, object, number};
    for (; at > 0 && is_before(&sim.heap[at], &sim.heap[(at - 1) / 2]); at = (at - 1) / 2)
        swap_events(at, (at - 1) / 2);
}

static event take_event(void)
{
    const event next = sim.heap[0];
    size_t at = 0;
    sim.heap[0] = sim.heap[--sim.count];
    for (;;) {
        size_t least = 2 * at + 1;
        if (least >= sim.count)
            return next;
        if (least + 1 < sim.count && is_before(&sim.heap[least + 1], &sim.heap[least]))
            least++;
        if (!is_before(&sim.heap[least], &sim.heap[at]))
            return next;
        swap_events(at, least);
        at = least;
    }
}

double sim_now(void)
{
    return sim.now;
}

uint64_t sim_events(void)
{
    return sim.events;
}

/* ---- Changing fibers ---------------------------------------------------------------------- */

int sim_rank(void)
{
    return sim.running != NULL ? sim.running->rank : -1;
}

static void change_to(fiber *from, fiber *to, bool ends)
{
    fiber_marks_leave(&from->marks, &to->marks, ends);
    swapcontext(&from->context, &to->context);
    fiber_marks_enter(&from->marks, from == &sim.scheduler ? NULL : &sim.scheduler.marks);
}

static void run_fiber(void)
{
    fiber *me = sim.running;
    fiber_marks_enter(&me->marks, &sim.scheduler.marks);
    me->body(me->argument);
    me->state = ENDED;
    sim_wake(me);
    change_to(me, &sim.scheduler, true);
}

/* Texts of fail() are a thread's own, and all fibers are one thread. */
static void give_text(const fiber *f)
{
    fail_clear();
    if (f->fail_text[0] != '\0')
        (void)fail(RING_OK, "%s", f->fail_text);
}

static void resume(fiber *f)
{
    if (sim.loaded != f->rank) {
        if (sim.loaded >= 0)
            sim_rooms_save(sim.loaded);
        sim_rooms_load(f->rank);
        sim.loaded = f->rank;
    }
    give_text(f);
    f->state = RUNNING;
    sim.running = f;
    change_to(&sim.scheduler, f, false);
    sim.running = NULL;
    snprintf(f->fail_text, sizeof f->fail_text, "%s", fail_text());
}

static void on_due(fiber *f, uint64_t wait, bool timed_out)
{
    if (f->state != WAITING || f->wait != wait || sim.ended[f->rank])
        return;
    f->timed_out = timed_out;
    if (sim.stopped[f->rank])
        f->held = true;
    else
        resume(f);
}

static void on_time(void *object, uint64_t wait)
{
    on_due(object, wait, true);
}

static void on_wake(void *object, uint64_t wait)
{
    on_due(object, wait, false);
}

/* How late the scheduler of a machine is. */
static double lateness(void)
{
    return sim_draw_seconds(2e-6, 400e-6);
}

bool sim_block(const void *channel, double until)
{
    fiber *me = sim.running;
    me->channel = channel;
    me->state = WAITING;
    me->wait++;
    me->held = false;
    if (until < sim.now + 1e6)
        sim_at((until > sim.now ? until : sim.now) + lateness(), on_time, me, me->wait);
    change_to(me, &sim.scheduler, false);
    return !me->timed_out;
}

void sim_wake(const void *channel)
{
    for (int i = 0; i < sim.used; i++) {
        fiber *f = &sim.fibers[i];
        if (f->state == WAITING && f->channel == channel)
            sim_at(sim.now + lateness(), on_wake, f, f->wait);
    }
}

static fiber *new_fiber(void)
{
    for (int i = 0; i < sim.used; i++)
        if (sim.fibers[i].state == FREE)
            return &sim.fibers[i];
    if (sim.used == FIBERS) {
        fprintf(stderr, "simulation: too many fibers\n");
        abort();
    }
    return &sim.fibers[sim.used++];
}

int sim_start(int rank, void (*body)(void *), void *context)
{
    fiber *f = new_fiber();
    char *stack = sim.stacks + (size_t)(f - sim.fibers) * STACK_BYTES;
    const uint64_t wait = f->wait + 1;
#ifdef __SANITIZE_ADDRESS__
    ASAN_UNPOISON_MEMORY_REGION(stack, STACK_BYTES);
#endif
    *f = (fiber){.rank = rank, .body = body, .argument = context, .state = WAITING, .wait = wait};
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = stack;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = NULL;
    fiber_marks_new(&f->marks, stack, STACK_BYTES);
    makecontext(&f->context, run_fiber, 0);
    sim_at(sim.now + lateness(), on_wake, f, f->wait);
    return (int)(f - sim.fibers);
}

/* ---- Ranks ---------------------------------------------------------------------------------- */

void sim_called(void)
{
    const int rank = sim_rank();
    if (rank < 0)
        return;
    sim.calls[rank]++;
    if (sim.on_call != NULL)
        sim.on_call(rank, sim.calls[rank]);
}

void sim_set_hook(void (*on_call)(int rank, unsigned calls))
{
    sim.on_call = on_call;
}

void sim_end_rank(int rank)
{
    sim.ended[rank] = true;
    for (int i = 0; i < sim.used; i++)
        if (sim.fibers[i].rank == rank)
            sim.fibers[i].state = ENDED;
    if (sim_rank() == rank)
        change_to(sim.running, &sim.scheduler, true);
}

/* One that runs now stops at its next wait, or here. */
void sim_stop_rank(int rank, bool for_good)
{
    fiber *me = sim.running;
    sim.for_good[rank] = for_good;
    sim.stopped[rank] = true;
    if (sim_rank() != rank)
        return;
    me->state = WAITING;
    me->channel = NULL;
    me->wait++;
    me->held = true;
    me->timed_out = false;
    change_to(me, &sim.scheduler, false);
}

void sim_continue_rank(int rank)
{
    sim.stopped[rank] = false;
    for (int i = 0; i < sim.used; i++)
        if (sim.fibers[i].rank == rank && sim.fibers[i].state == WAITING && sim.fibers[i].held)
            sim_at(sim.now + lateness(), sim.fibers[i].timed_out ? on_time : on_wake,
                   &sim.fibers[i], sim.fibers[i].wait);
}

static bool all_ended(void)
{
    for (int i = 0; i < sim.used; i++)
        if (sim.fibers[i].state == WAITING && !sim.for_good[sim.fibers[i].rank])
            return false;
    return true;
}

bool sim_run(double until)
{
    while (sim.count > 0 && sim.heap[0].when < until && sim.events < MOST_EVENTS) {
        const event next = take_event();
        sim.now = next.when;
        sim.events++;
        next.action(next.object, next.number);
        if (all_ended())
            return true;
    }
    return all_ended();
}

void sim_reset_fibers(void)
{
    if (sim.stacks == NULL)
        sim.stacks = mmap(NULL, (size_t)FIBERS * STACK_BYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sim.stacks == MAP_FAILED)
        abort();
    fiber_marks_main(&sim.scheduler.marks);
    for (int i = 0; i < sim.used; i++)
        sim.fibers[i].state = FREE;
    for (int r = 0; r < SIM_RANKS; r++) {
        sim.ended[r] = sim.stopped[r] = sim.for_good[r] = false;
        sim.calls[r] = 0;
    }
    sim.used = 0;
    sim.count = 0;
    sim.now = 1000;
    sim.events = sim.orders = 0;
    sim.loaded = -1;
    sim.running = NULL;
}

/* ---- The threads' calls ------------------------------------------------------------------- */

/* A clock that never stands still, so that no loop over a deadline can. Hosts' clocks began at
 * different times. */
int __wrap_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
    sim.now += 50e-9;
    const double shown = sim.now + 1000.0 * (sim_rank() + 1);
    out->tv_sec = (time_t)shown;
    out->tv_nsec = (long)((shown - (double)out->tv_sec) * 1e9);
    return 0;
}

static double since_start(double shown)
{
    return shown - 1000.0 * (sim_rank() + 1);
}

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
    sim_called();
    while (sim_block(NULL, sim.now + (double)wanted->tv_sec + 1e-9 * (double)wanted->tv_nsec))
        continue;
    return 0;
}

int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
    (void)sim_block(NULL, sim.now);
    return 0;
}

/* The word of a mutex is 1 while it is held. */
static int *word_of(pthread_mutex_t *m)
{
    return (int *)m;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
    while (*word_of(m) != 0)
        (void)sim_block(m, SIM_NEVER);
    *word_of(m) = 1;
    return 0;
}

/* Now and then another thread takes its turn here. */
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
    *word_of(m) = 0;
    sim_wake(m);
    if (sim.running != NULL && sim_chance(50))
        (void)sim_block(NULL, sim.now);
    return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *c);
int __wrap_pthread_cond_broadcast(pthread_cond_t *c)
{
    sim_wake(c);
    return 0;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
                                  const struct timespec *until)
{
    sim_called();
    *word_of(m) = 0;
    sim_wake(m);
    const bool woken = sim_block(c, since_start((double)until->tv_sec +
                                                1e-9 * (double)until->tv_nsec));
    __wrap_pthread_mutex_lock(m);
    return woken ? 0 : ETIMEDOUT;
}

typedef struct start {
    void *(*body)(void *);
    void *argument;
} start;

static start starts[FIBERS];

static void run_thread(void *argument)
{
    const start *s = argument;
    (void)s->body(s->argument);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument)
{
    sim_called();
    const int number = sim_start(sim_rank(), run_thread, NULL);
    starts[number] = (start){body, argument};
    sim.fibers[number].argument = &starts[number];
    *thread = (pthread_t)number;
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result)
{
    fiber *f = &sim.fibers[(int)thread];
    sim_called();
    while (f->state != ENDED)
        (void)sim_block(f, SIM_NEVER);
    return 0;
}

int __wrap_pthread_sigmask(int how, const void *set, void *old);
int __wrap_pthread_sigmask(int how, const void *set, void *old)
{
    return 0;
}
