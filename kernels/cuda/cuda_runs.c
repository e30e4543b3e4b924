/* SPDX-License-Identifier: Apache-2.0
 * Launches runs of programs, for one rank or for all ranks that share a GPU.
 *
 * A rank that has the GPU to itself launches in the stream of its call. If ranks shared a GPU and
 * launched separately, their kernels might not be resident together, and would wait for each other
 * forever. So one launch runs the calls of all ranks of a process that share a GPU. Each rank
 * announces its run by an event in its stream, and waits briefly in its call. If all ranks announce
 * the run in time, the last one makes its stream wait for the events, launches there, and records
 * the end, for which the other streams wait. Otherwise ranks park, so that no call waits longer for
 * another rank: words order the streams. Each stream writes that it has reached the run, and waits
 * until the group's stream, in which the last rank to park launches, has completed it. */
#include "cuda_runs.h"

#include "cuda_kernels.h"
#include "cuda_stops.h"
#include "kernel_args.h"

#include <stdlib.h>
#include <string.h>

/* ---- Kernels ------------------------------------------------------------------------------ */

static ring_status load_kernels(const cuda_device *c, struct cuda_programs *p)
{
    static const char *const names[] = {
#define ROW(type) "program_" #type,
        CUDA_FOLD_TYPES(ROW)
#undef ROW
    };
    RING_TRY(p->module != NULL ? cuda_kernels_find(p->module, names, p->of)
                               : cuda_kernels_load("program", names, &p->module, p->of));
    RING_TRY(cuda_kernels_find_one(p->module, "program_chores", &p->chores));
    RING_TRY(cuda_kernels_find_one(p->module, "program_pairs", &p->pairs));
    return cuda_kernels_count_blocks(c->device, p->of[RING_FLOAT8_E4M3], DEVICE_THREADS,
                                     &p->blocks);
}

ring_status program_kernel(const cuda_device *c, CUfunction *of, ring_dtype dtype, int *blocks)
{
    struct cuda_programs *p = c->programs;
    pthread_mutex_lock(&p->lock);
    const ring_status status = p->blocks > 0 ? RING_OK : load_kernels(c, p);
    *of = p->of[dtype]; /* under the lock: after a failure another rank may load them again */
    *blocks = p->blocks;
    pthread_mutex_unlock(&p->lock);
    return status;
}

/* ---- Admission ---------------------------------------------------------------------------- */

/* Kernels of several communicators wait for other GPUs at the same time, and ranks may call these
 * communicators in different orders. If not all of those kernels had room, the ones that run could
 * wait forever for others that do not. A seat gets a part of the free blocks, so that later ones
 * get some, too. Only half of a GPU's blocks are given away, in equal parts to the processes that
 * share it. The others are for kernels that wait for no other launch, which need not have room at
 * the same time: those of the threads of one process, and folds. */
enum { FREE_PART = 3 };

int program_admit(const cuda_device *c, int most)
{
    struct cuda_programs *p = c->programs;
    pthread_mutex_lock(&p->lock);
    const int free = p->blocks / 2 / p->processes - p->admitted;
    const int part = free > 0 ? (free + FREE_PART - 1) / FREE_PART : 0;
    const int blocks = part < most ? part : most;
    p->admitted += blocks;
    pthread_mutex_unlock(&p->lock);
    return blocks;
}

void program_dismiss(const cuda_device *c, int blocks, int processes)
{
    struct cuda_programs *p = c->programs;
    pthread_mutex_lock(&p->lock);
    p->admitted -= blocks;
    p->processes = processes > p->processes ? processes : p->processes;
    pthread_mutex_unlock(&p->lock);
}

/* ---- Groups ------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    program_group *first;
} groups = {.lock = PTHREAD_MUTEX_INITIALIZER};

static ring_status create_event(CUevent *out)
{
    return cuda_check(cuda_driver_load()->event_create(out, CU_EVENT_DISABLE_TIMING),
                      "creating an event (cuEventCreate)");
}

static void free_group(program_group *g)
{
    const cuda_driver *api = cuda_driver_load();
    for (pending_launch *p = g->first, *next; p != NULL; p = next) {
        next = p->next;
        free(p);
    }
    if (g->launch_end != NULL)
        (void)api->event_destroy(g->launch_end);
    if (g->stream != NULL)
        (void)api->stream_destroy(g->stream);
    pthread_mutex_destroy(&g->lock);
    arena_unpin(g->arena, g->pinned, 1);
    arena_drop(g->arena);
    free(g);
}

ring_status program_group_new(cuda_arena *a, program_group **out)
{
    const size_t pinned = arena_pin(a, 1);
    program_group *g = pinned < PINNED_UNITS ? calloc(1, sizeof *g) : NULL;
    if (g == NULL) {
        if (pinned < PINNED_UNITS)
            arena_unpin(a, pinned, 1);
        return fail(RING_ERR_MEMORY, "attaching to a GPU");
    }
    g->users = 1;
    g->end = &g->first;
    pthread_mutex_init(&g->lock, NULL);
    arena_hold(a);
    g->arena = a;
    g->pinned = pinned;
    g->words = memset(pinned_at(a, pinned), 0, sizeof *g->words);
    g->done_there = pinned_there(a, pinned) + offsetof(group_words, done);
    g->release_there = pinned_there(a, pinned) + offsetof(group_words, release);
    pthread_mutex_lock(&groups.lock);
    g->next = groups.first;
    groups.first = g;
    pthread_mutex_unlock(&groups.lock);
    *out = g;
    return RING_OK;
}

/* Inserts a seat; they are in the order of their ranks. If the start fails, others may have been
 * freed. */
static void add_seat(program_group *g, accelerator_seat *s)
{
    int at = g->count++;
    for (; at > 0 && g->members[at - 1].rank > s->rank; at--) {
        g->seats[at] = g->seats[at - 1];
        g->members[at].rank = g->members[at - 1].rank;
    }
    g->seats[at] = s;
    g->members[at].rank = s->rank;
}

ring_status program_group_join(uint64_t address, accelerator_seat *s, program_group **out)
{
    ring_status status = RING_OK;
    pthread_mutex_lock(&groups.lock);
    program_group *g = groups.first;
    while (g != NULL && (uintptr_t)g != address)
        g = g->next;
    if (g != NULL) {
        g->users++;
        pthread_mutex_lock(&g->lock);
        add_seat(g, s);
        if (g->count == 2)
            status = cuda_own_stream(&g->stream);
        if (g->count == 2 && status == RING_OK)
            status = create_event(&g->launch_end);
        pthread_mutex_unlock(&g->lock);
    }
    pthread_mutex_unlock(&groups.lock);
    *out = g;
    return status;
}

void program_group_drop(program_group *g)
{
    program_group **at = &groups.first;
    pthread_mutex_lock(&groups.lock);
    const bool last = --g->users == 0;
    while (last && *at != g)
        at = &(*at)->next;
    if (last)
        *at = g->next;
    pthread_mutex_unlock(&groups.lock);
    if (last)
        free_group(g);
}

/* ---- Words and events that order streams --------------------------------------------------- */

/* @return true if the run with that number is not later than the latest one; numbers wrap. */
static bool is_past(uint32_t number, uint32_t latest)
{
    return (int32_t)(latest - number) >= 0;
}

static ring_status write_word(CUstream stream, CUdeviceptr word, uint32_t value)
{
    return cuda_check(cuda_driver_load()->stream_write_value(stream, word, value, 0),
                      "marking a place in a stream (cuStreamWriteValue32)");
}

static ring_status await_word(CUstream stream, CUdeviceptr word, uint32_t value)
{
    return cuda_check(cuda_driver_load()->stream_wait_value(stream, word, value,
                                                            CU_STREAM_WAIT_VALUE_GEQ),
                      "making a stream wait (cuStreamWaitValue32)");
}

static ring_status record_event(CUstream stream, CUevent event)
{
    return cuda_check(cuda_driver_load()->event_record(event, stream),
                      "marking a place in a stream (cuEventRecord)");
}

static ring_status await_event(CUstream stream, CUevent event)
{
    return cuda_check(cuda_driver_load()->stream_wait_event(stream, event, 0),
                      "making a stream wait (cuStreamWaitEvent)");
}

static CUdeviceptr arrived_of(const accelerator_seat *s)
{
    return s->words_there + offsetof(seat_words, arrived);
}

static CUdeviceptr passed_of(const accelerator_seat *s)
{
    return s->words_there + offsetof(seat_words, passed);
}

/* ---- Launches ----------------------------------------------------------------------------- */

uint64_t cuda_run_nanoseconds(double timeout)
{
    return timeout < 1e9 ? (uint64_t)(timeout * 1e9) : (uint64_t)1e18;
}

void cuda_run_hold(const accelerator_seat *s, bool holds, CUstream stream, device_call *call)
{
    if (holds && stream != s->own.stream)
        call->release = (const uint64_t *)(uintptr_t)s->group->release_there;
}

static void bind_call(const kept_program *k, const accelerator_run *run, CUstream stream,
                      device_call *call)
{
    *call = k->call;
    cuda_run_hold(k->seat, run->holds, stream, call);
    call->src = (char *)(uintptr_t)run->src;
    call->dst = run->dst;
    call->scale_at = run->scale_at;
    call->scale = run->scale;
    call->nanoseconds = cuda_run_nanoseconds(run->timeout);
}

/* Writes the bases of the run's lists to the place of the run with the next number, which earlier
 * runs no longer read. */
static void bind_lists(const accelerator_seat *s, const accelerator_run *run, ring_dtype dtype,
                       device_call *call)
{
    const size_t ranks = (size_t)s->ranks, size = ring_dtype_size(dtype);
    for (size_t side = 0; side < 2; side++) {
        const size_t first = ((s->number + 1) % LISTED_RUNS * (size_t)2 + side) * ranks;
        call->bases[side] = NULL;
        if (run->lists[side] == NULL)
            continue;
        for (size_t i = 0; i < ranks; i++)
            s->lists.bases[first + i] = (uintptr_t)run->lists[side][i] -
                                        run->places[side][i] * size;
        call->bases[side] = (const uint64_t *)(uintptr_t)(s->lists.there +
                                                          first * sizeof *s->lists.bases);
    }
}

/* A cooperative launch runs all blocks at once or fails, because lanes of different ranks wait for
 * each other. */
static ring_status launch(CUfunction function, uint32_t blocks, void *args, CUstream stream)
{
    void *parameters[] = {args};
    return cuda_check(cuda_driver_load()->launch_cooperative(function, blocks, 1, 1, DEVICE_THREADS,
                                                             1, 1, 0, stream, parameters),
                      "starting a call (cuLaunchCooperativeKernel)");
}

/* @return a number that no other stream of the process has. Handles are not unique: a handle is
 * reused after its stream was destroyed, and each thread's own default stream has the same one. */
static ring_status identify(CUstream stream, uint64_t *out)
{
    const cuda_driver *api = cuda_driver_load();
    unsigned long long id = (uintptr_t)stream;
    if (api->stream_get_id != NULL)
        RING_TRY(
            cuda_check(api->stream_get_id(stream, &id), "identifying a stream (cuStreamGetId)"));
    *out = id;
    return RING_OK;
}

ring_status cuda_run_open(accelerator_seat *s)
{
    RING_TRY(cuda_own_stream(&s->own.stream));
    RING_TRY(identify(s->own.stream, &s->own.id));
    const size_t bytes = (size_t)s->ranks * LISTED_RUNS * 2 * sizeof *s->lists.bases;
    s->lists.count = pinned_units(bytes);
    s->lists.first = arena_pin(s->arena, s->lists.count);
    if (s->lists.first == PINNED_UNITS)
        return fail(RING_ERR_MEMORY, "the pinned memory for calls on %s is full", s->of->name);
    s->lists.bases = pinned_at(s->arena, s->lists.first);
    s->lists.there = pinned_there(s->arena, s->lists.first);
    RING_TRY(create_event(&s->place));
    return create_event(&s->mark);
}

void cuda_run_close(const accelerator_seat *s)
{
    const cuda_driver *api = cuda_driver_load();
    if (s->mark != NULL)
        (void)api->event_destroy(s->mark);
    if (s->place != NULL)
        (void)api->event_destroy(s->place);
    if (s->own.stream != NULL)
        (void)api->stream_destroy(s->own.stream);
    if (s->lists.bases != NULL)
        arena_unpin(s->arena, s->lists.first, s->lists.count);
}

ring_status cuda_run_follow(CUstream stream, CUstream of, CUevent mark)
{
    RING_TRY(record_event(of, mark));
    return await_event(stream, mark);
}

ring_status cuda_run_follow_default(const accelerator_seat *s, CUstream stream)
{
    bool busy;
    RING_TRY(cuda_default_is_busy(&busy));
    if (!busy)
        return RING_OK;
    return cuda_run_follow(stream, CUDA_LEGACY_STREAM, s->mark);
}

/* Makes the stream wait for the rank's previous run if that is in another stream, so that the runs
 * of a rank are executed in the order of their numbers. */
static ring_status follow(accelerator_seat *s, CUstream stream)
{
    uint64_t id = s->own.id;
    if (stream != s->own.stream)
        RING_TRY(identify(stream, &id));
    if (s->number > 0 && s->last != id)
        RING_TRY(await_word(stream, passed_of(s), s->number));
    s->last = id;
    return RING_OK;
}

ring_status cuda_run_launch(accelerator_seat *s, CUfunction function, uint32_t blocks, void *args,
                            device_call *call, CUstream stream, bool captured)
{
    s->captured |= captured;
    if (captured)
        return launch(function, blocks, args, stream);
    RING_TRY(follow(s, stream));
    call->passed = (uint32_t *)(uintptr_t)passed_of(s);
    call->run = s->number + 1;
    RING_TRY(launch(function, blocks, args, stream));
    s->number++;
    return RING_OK;
}

static ring_status run_alone(accelerator_seat *s, const accelerator_run *run, CUstream stream,
                             CUfunction function, bool captured)
{
    kept_program *k = (kept_program *)(uintptr_t)run->kept;
    program_args args = {.ranks = 1, .lanes = (uint32_t)k->lanes};
    bind_call(k, run, stream, &args.calls[0]);
    bind_lists(s, run, k->dtype, &args.calls[0]);
    k->captured |= captured;
    return cuda_run_launch(s, function, args.lanes, &args, &args.calls[0], stream, captured);
}

/* ---- Launches that ranks share --------------------------------------------------------------- */

static pending_launch *find_pending(program_group *g, uint32_t number)
{
    pending_launch *p = g->first;
    while (p != NULL && p->number != number)
        p = p->next;
    if (p != NULL)
        return p;
    p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->number = number;
    p->args.ranks = (uint32_t)g->count;
    *g->end = p;
    g->end = &p->next;
    return p;
}

/* Removes a run that was launched. Each rank settles a run before it announces the next one, so it
 * is the oldest. */
static void end_pending(program_group *g, pending_launch *p)
{
    atomic_store(&g->launched, p->number);
    g->first = p->next;
    if (g->first == NULL)
        g->end = &g->first;
    free(p);
}

/* Launches a run in the stream of the last rank to announce it. No other rank has parked. */
static ring_status launch_here(accelerator_seat *s, pending_launch *p, CUstream stream)
{
    program_group *g = s->group;
    for (int i = 0; i < g->count; i++) {
        p->args.calls[i].passed = (uint32_t *)(uintptr_t)passed_of(g->seats[i]);
        p->args.calls[i].run = p->number;
        if (g->seats[i] != s)
            RING_TRY(await_event(stream, g->seats[i]->mark));
    }
    RING_TRY(launch(p->function, p->args.ranks * p->args.lanes, &p->args, stream));
    const ring_status status = record_event(stream, g->launch_end);
    if (status != RING_OK)
        g->dead = true;
    s->announced = NULL;
    atomic_store(&g->parked, p->number - 1); /* keeps it close to `launched`: numbers wrap */
    end_pending(g, p);
    return status;
}

/* Launches a run at which all ranks have parked. */
static ring_status launch_apart(program_group *g, pending_launch *p)
{
    for (int i = 0; i < g->count; i++)
        RING_TRY(await_word(g->stream, arrived_of(g->seats[i]), p->number));
    RING_TRY(launch(p->function, p->args.ranks * p->args.lanes, &p->args, g->stream));
    RING_TRY(write_word(g->stream, g->done_there, p->number));
    end_pending(g, p);
    return RING_OK;
}

/* The stream writes `passed`, since nothing else would after a release. */
static ring_status enqueue_words(const accelerator_seat *s, CUstream stream)
{
    RING_TRY(write_word(stream, arrived_of(s), s->number));
    RING_TRY(await_word(stream, s->group->done_there, s->number));
    return write_word(stream, passed_of(s), s->number);
}

/* Makes the rank's stream wait by words. If the run was released, its word has been written. The
 * lock is given up meanwhile: if the stream is full, the driver waits for runs that the other ranks
 * must launch. */
static ring_status park(accelerator_seat *s)
{
    program_group *g = s->group;
    const CUstream stream = s->announced;
    s->announced = NULL;
    if (!g->dead) {
        find_pending(g, s->number)->parking++;
        atomic_store(&g->parked, s->number);
    }
    pthread_mutex_unlock(&g->lock);
    const ring_status status = enqueue_words(s, stream);
    pthread_mutex_lock(&g->lock);
    if (status != RING_OK || g->dead)
        return status;
    pending_launch *p = find_pending(g, s->number);
    return ++p->parked == g->count ? launch_apart(g, p) : RING_OK;
}

/* Makes the rank's stream wait for a run that it has announced: for the end of the launch, or, if
 * not all ranks have announced the run, by words. The caller holds the lock. */
static ring_status settle(accelerator_seat *s)
{
    const CUstream stream = s->announced;
    if (stream == NULL)
        return RING_OK;
    if (!is_past(s->number, atomic_load(&s->group->launched)))
        return park(s);
    s->announced = NULL;
    return await_event(stream, s->group->launch_end);
}

/* Announces a run; the last rank launches it. If a rank has parked, this one does so at once. */
static ring_status announce(accelerator_seat *s, const accelerator_run *run, CUstream stream,
                            CUfunction function)
{
    const kept_program *k = run->kept;
    program_group *g = s->group;
    int place = 0;
    pending_launch *p = find_pending(g, s->number + 1);
    if (p == NULL)
        return fail(RING_ERR_MEMORY, "starting a call on a GPU");
    while (g->seats[place] != s)
        place++;
    bind_call(k, run, stream, &p->args.calls[place]);
    bind_lists(s, run, k->dtype, &p->args.calls[place]);
    RING_TRY(follow(s, stream));
    if (p->announced > 0 && (p->function != function || p->args.lanes != (uint32_t)k->lanes))
        return fail(RING_ERR_MISMATCH, "another rank that shares %s has made a different call",
                    s->of->name);
    p->function = function;
    p->args.lanes = (uint32_t)k->lanes;
    s->number = p->number;
    s->announced = stream;
    atomic_store(&g->members[place].number, p->number);
    const bool last = ++p->announced == g->count, must_park = p->number % PARKS_ONCE_IN == 0;
    if (last && p->parking == 0 && !must_park)
        return launch_here(s, p, stream);
    return p->parking > 0 || last ? park(s) : record_event(stream, s->mark);
}

/* ---- Starts ------------------------------------------------------------------------------- */

static ring_status start_inside(accelerator_seat *s, const accelerator_run *run, CUstream stream,
                                bool captured, uint32_t *number)
{
    const kept_program *k = run->kept;
    program_group *g = s->group;
    CUfunction function;
    int blocks;
    RING_TRY(program_kernel(s->of, &function, k->dtype, &blocks));
    RING_TRY(settle(s)); /* of an earlier call of the same group of calls */
    if (g->dead)
        return fail(RING_ERR_ABORTED, "the communicator has failed");
    if (run->after_default)
        RING_TRY(cuda_run_follow_default(s, stream));
    const ring_status status = g->count > 1 ? announce(s, run, stream, function)
                                            : run_alone(s, run, stream, function, captured);
    *number = captured ? 0 : s->number;
    return status;
}

/* Waits until the memory for the lists of the next run is free. */
static ring_status await_lists(const accelerator_seat *s, double timeout)
{
    const double end = clock_now() + timeout;
    while (!cuda_run_has_passed(s, s->number + 1 - LISTED_RUNS)) {
        if (atomic_load(&s->words->abort) != 0)
            return fail(RING_ERR_ABORTED, "the communicator has failed");
        if (clock_now() > end)
            return fail(RING_ERR_TIMEOUT,
                        "%d calls with lists of blocks are ahead of this one in streams of %s, and "
                        "the first has not ended before the deadline",
                        (int)LISTED_RUNS, s->of->name);
        clock_sleep(1e-4);
    }
    return RING_OK;
}

/* Waits until all ranks have announced the run, or one has parked. */
static void await_ranks(const program_group *g, uint32_t number, double until)
{
    while (!is_past(number, atomic_load(&g->launched)) &&
           !is_past(number, atomic_load(&g->parked)) && clock_now() < until)
        cpu_pause();
}

static ring_status settle_inside(accelerator_seat *s, uint32_t number, double until)
{
    await_ranks(s->group, number, until);
    pthread_mutex_lock(&s->group->lock);
    const ring_status status = s->number == number ? settle(s) : RING_OK;
    pthread_mutex_unlock(&s->group->lock);
    return status;
}

ring_status cuda_run_settle(accelerator_seat *s, uint32_t number, double until)
{
    if (s->group->count == 1)
        return RING_OK;
    RING_TRY(cuda_enter(s->of));
    const ring_status status = settle_inside(s, number, until);
    cuda_leave();
    return status;
}

/* A stream has room for some hundred runs. When it is full, the driver waits inside a call until
 * other ranks have launched some. */
static ring_status await_launches(const accelerator_seat *s, double timeout)
{
    const double end = clock_now() + timeout;
    while (s->number - atomic_load(&s->group->launched) >= AHEAD_MOST && !s->group->dead &&
           atomic_load(&s->words->abort) == 0) {
        if (clock_now() > end)
            return fail(RING_ERR_TIMEOUT,
                        "%d calls are ahead of this one in streams of %s, and another rank that "
                        "shares it has not made the first of them before the deadline",
                        (int)AHEAD_MOST, s->of->name);
        clock_sleep(1e-4);
    }
    return RING_OK;
}

ring_status cuda_run_start(accelerator_seat *s, const accelerator_run *run, bool captured,
                           uint32_t *number)
{
    CUstream stream = run->stream != NULL ? run->stream : s->own.stream;
    if (s->group->count > 1)
        RING_TRY(await_launches(s, run->timeout));
    if (run->lists[0] != NULL || run->lists[1] != NULL)
        RING_TRY(await_lists(s, run->timeout));
    if (run->gate != NULL)
        RING_TRY(s->of->base.stop(&s->of->base, stream, run->gate));
    RING_TRY(cuda_enter(s->of));
    pthread_mutex_lock(&s->group->lock);
    ring_status status = start_inside(s, run, stream, captured, number);
    const bool waits = status == RING_OK && s->announced != NULL && run->until >= 0;
    pthread_mutex_unlock(&s->group->lock);
    if (waits)
        status = settle_inside(s, *number, run->until);
    cuda_leave();
    return status;
}

/* ---- Ends --------------------------------------------------------------------------------- */

static ring_status read_verdicts(const accelerator_seat *s, accelerator_verdict *out)
{
    for (int lane = 0; lane < s->shape.lanes; lane++) {
        const device_verdict *v = &s->words->verdicts[lane];
        const uint64_t status = __atomic_load_n(&v->status, __ATOMIC_ACQUIRE);
        if (status == RING_OK)
            continue;
        *out = (accelerator_verdict){.status = (ring_status)status,
                                     .peer = (int32_t)v->peer,
                                     .their_signature = v->their_signature,
                                     .their_bytes = v->their_call ^ DEVICE_PAIR_CALL(0)};
        return out->status;
    }
    return RING_OK;
}

/* A run that has passed but was never launched has been released by cuda_run_release(). The kernel
 * may end before its launch is noted in `launched`. */
ring_status cuda_run_state(const accelerator_seat *s, uint32_t number, accelerator_verdict *out,
                           int *missing)
{
    program_group *g = s->group;
    *missing = -1;
    const bool passed = number == 0 || cuda_run_has_passed(s, number);
    RING_TRY(read_verdicts(s, out));
    if (number == 0)
        return RING_OK;
    const bool waits = g->count > 1 && !is_past(number, atomic_load(&g->launched));
    for (int i = 0; waits && *missing < 0 && i < g->count; i++)
        if (!is_past(number, atomic_load(&g->members[i].number)))
            *missing = g->members[i].rank;
    if (!passed)
        return RING_IN_PROGRESS;
    if (!waits || !g->dead)
        return RING_OK;
    *out = (accelerator_verdict){.status = RING_ERR_ABORTED};
    return RING_ERR_ABORTED;
}

bool cuda_run_has_passed(const accelerator_seat *s, uint32_t number)
{
    return is_past(number, atomic_load(&s->words->passed));
}

bool cuda_run_await_end(const accelerator_seat *s)
{
    const double end = clock_now() + 2;
    while (!cuda_run_has_passed(s, s->number) && clock_now() < end)
        clock_sleep(1e-4);
    return cuda_run_has_passed(s, s->number);
}

void cuda_run_abort(accelerator_seat *s)
{
    atomic_store(&s->words->abort, 1);
}

void cuda_run_let_go(accelerator_seat *s)
{
    atomic_store(&s->group->words->release, 1);
}

/* Completes the pending runs without launching them. The words are written in the group's stream,
 * after the runs that it has launched, because they must only grow. That stream no longer waits for
 * the rank's stream, which may wait for a launched run itself if two ranks share it: the kernel
 * runs, sees the abort, and ends. */
void cuda_run_release(accelerator_seat *s)
{
    program_group *g = s->group;
    cuda_run_let_go(s);
    if (cuda_enter(s->of) != RING_OK)
        return;
    pthread_mutex_lock(&g->lock);
    g->dead = true;
    for (pending_launch *p = g->first, *next; p != NULL; p = next) {
        next = p->next;
        (void)write_word(g->stream, g->done_there, p->number);
        free(p);
    }
    g->first = NULL;
    g->end = &g->first;
    (void)settle(s); /* of a start that has failed */
    atomic_store(&s->words->arrived, s->number);
    pthread_mutex_unlock(&g->lock);
    cuda_leave();
}
