/* SPDX-License-Identifier: Apache-2.0
 * Streams: queues of ops, and the threads of the GPU process that run them. The host process
 * appends ops in its calls, and one thread for each stream runs them in order. */
#include "gpu.h"

#include <string.h>
#include <time.h>

static _Thread_local int own_streams[MOST_DEVICES]; /* slots of CU_STREAM_PER_THREAD; 0: none yet */

/* ---- In the GPU process ---- */

static void sleep_us(uint64_t us)
{
    const struct timespec t = {.tv_sec = (time_t)(us / 1000000),
                               .tv_nsec = (long)(us % 1000000) * 1000};
    nanosleep(&t, NULL);
}

/* The delay is computed from seed and ticket, so the same calls in the same order have the same
 * delays. */
static void be_late(const op *o)
{
    uint64_t x = gpu_is.seed * 0x9e3779b97f4a7c15u + o->ticket * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 31) * 0x94d049bb133111ebu;
    if (gpu_is.delay_us > 0)
        sleep_us((x >> 20) % (gpu_is.delay_us + 1));
    if (o->late)
        sleep_us(gpu_is.late_us);
}

static bool has_value(const op *o)
{
    const uint64_t mask = o->width == 8 ? UINT64_MAX : UINT32_MAX;
    const uint64_t is = o->width == 8 ? __atomic_load_n((const uint64_t *)o->to, __ATOMIC_ACQUIRE)
                                      : __atomic_load_n((const uint32_t *)o->to, __ATOMIC_ACQUIRE);
    const uint64_t less = (is - o->value) & mask;
    switch (o->flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ: /* cyclic */
        return less <= mask >> 1;
    case CU_STREAM_WAIT_VALUE_EQ:
        return less == 0;
    case CU_STREAM_WAIT_VALUE_AND:
        return (is & o->value & mask) != 0;
    default:
        return (~(is | o->value) & mask) != 0;
    }
}

static void write_value(const op *o)
{
    if (o->width == 8)
        __atomic_store_n((uint64_t *)o->to, o->value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint32_t *)o->to, (uint32_t)o->value, __ATOMIC_RELEASE);
}

/* A device copies and sets aligned words whole. libring polls words of 32 bits that way. */
enum { WORDS_MOST = 64 /* bytes */ };

static bool is_of_words(const op *o)
{
    return o->bytes <= WORDS_MOST && ((o->to | o->from | o->bytes) & 3) == 0;
}

static void set(const op *o)
{
    if (o->width == 1)
        memset((void *)o->to, (int)o->value, o->bytes);
    else if (is_of_words(o))
        for (size_t i = 0; i < o->bytes / 4; i++)
            __atomic_store_n((uint32_t *)o->to + i, (uint32_t)o->value, __ATOMIC_RELAXED);
    else
        for (size_t i = 0; i < o->bytes / 4; i++)
            ((uint32_t *)o->to)[i] = (uint32_t)o->value;
}

static void copy(const op *o)
{
    if (is_of_words(o))
        for (size_t i = 0; i < o->bytes / 4; i++)
            __atomic_store_n((uint32_t *)o->to + i,
                             __atomic_load_n((const uint32_t *)o->from + i, __ATOMIC_RELAXED),
                             __ATOMIC_RELAXED);
    else
        memmove((void *)o->to, (const void *)o->from, o->bytes);
}

/* Hands the op to the host's thread for host functions, and waits until that thread has run it. */
static void call_host(op *o)
{
    const int index = (int)(o - gpu->ops);
    gpu_lock();
    o->queued = -1;
    o->ended = 0;
    if (gpu->functions_last >= 0)
        gpu->ops[gpu->functions_last].queued = index;
    else
        gpu->functions_first = index;
    gpu->functions_last = index;
    gpu_ring(BELL_FUNCTIONS);
    while (o->ended == 0)
        gpu_await(BELL_STREAMS);
    gpu_unlock();
}

static void run(op *o, int slot)
{
    switch (o->kind) {
    case OP_COPY:
        copy(o);
        break;
    case OP_SET:
        set(o);
        break;
    case OP_WRITE_VALUE:
        write_value(o);
        break;
    case OP_WAIT_VALUE:
        while (!has_value(o))
            sleep_us(20);
        break;
    case OP_RECORD:
        event_done(o, slot);
        break;
    case OP_HOST:
        call_host(o);
        break;
    case OP_LAUNCH:
        launch_run(o, gpu->streams[slot].device);
        break;
    case OP_FREE:
        gpu_lock();
        allocation_free(allocation_find(o->to));
        gpu_unlock();
        break;
    case OP_WAIT: /* may_start() has waited */
        break;
    }
}

static bool has_earlier(int slot, uint64_t ticket)
{
    const int first = gpu->streams[slot].first;
    return first >= 0 && gpu->ops[first].ticket < ticket;
}

/* The legacy stream of a device and its blocking streams wait for each other: an op starts after
 * all ops of the other that were appended before it. */
static bool may_start(int slot, const op *o)
{
    const gpu_stream *s = &gpu->streams[slot];
    const int legacy = s->device + 1;
    if (o->kind == OP_WAIT && gpu->streams[o->from].done < o->value)
        return false;
    if (queue_holder(slot, o) != NULL)
        return false;
    if (s->non_blocking)
        return true;
    if (slot != legacy)
        return !has_earlier(legacy, o->ticket);
    for (int i = gpu_is.devices + 1; i < MOST_STREAMS; i++) {
        const gpu_stream *other = &gpu->streams[i];
        if (other->device == s->device && !other->non_blocking && has_earlier(i, o->ticket))
            return false;
    }
    return true;
}

static void end_op(gpu_stream *s, op *o)
{
    queue_leave(o->stream, o);
    s->first = o->next;
    s->last = s->first >= 0 ? s->last : -1;
    s->done = o->ticket;
    o->next = gpu->free_ops;
    gpu->free_ops = (int)(o - gpu->ops);
    gpu->ops_left++;
    gpu->ops_done++;
    gpu_ring(BELL_HOST);
    gpu_ring(BELL_STREAMS);
}

void *stream_main(void *slot_number)
{
    const int slot = (int)(intptr_t)slot_number;
    gpu_stream *s = &gpu->streams[slot];
    gpu_lock();
    for (;;) {
        while (s->first < 0 || !may_start(slot, &gpu->ops[s->first]))
            gpu_await(BELL_STREAMS);
        op *o = &gpu->ops[s->first];
        gpu_unlock();
        /* The host may have read a word that a kernel released, and appended the op because of
         * that. ThreadSanitizer does not see this, since the host is another process. */
        (void)emulated_releases();
        be_late(o);
        run(o, slot);
        gpu_lock();
        end_op(s, o);
    }
    return NULL;
}

/* ---- In the host process ---- */

void *function_main(void *unused)
{
    in_host_function = true;
    gpu_lock();
    for (;;) {
        while (gpu->functions_first < 0)
            gpu_await(BELL_FUNCTIONS);
        op *o = &gpu->ops[gpu->functions_first];
        gpu->functions_first = o->queued;
        gpu->functions_last = o->queued >= 0 ? gpu->functions_last : -1;
        gpu_unlock();
        o->function(o->data);
        gpu_lock();
        o->ended = 1;
        gpu_ring(BELL_STREAMS);
    }
    return NULL;
}

static void put_last(int slot, const op *o, bool replayed)
{
    gpu_stream *s = &gpu->streams[slot];
    const int index = gpu->free_ops >= 0 ? gpu->free_ops : gpu->ops_used++;
    op *mine = &gpu->ops[index];
    if (index == gpu->free_ops)
        gpu->free_ops = mine->next;
    gpu->ops_left--;
    memcpy(mine, o, offsetof(op, args) + o->args_bytes);
    mine->launch.args = mine->args;
    mine->ticket = s->asked = ++gpu->tickets;
    mine->next = -1;
    mine->stream = slot;
    mine->replayed = replayed;
    if (o->kind == OP_RECORD && o->to == 0) {
        gpu->events[o->from].stream = slot;
        gpu->events[o->from].ticket = mine->ticket;
    }
    if (s->last >= 0)
        gpu->ops[s->last].next = index;
    else
        s->first = index;
    s->last = index;
    queue_enter(slot, mine);
}

uint64_t stream_append(int slot, const op *const *ops, int count, appender who)
{
    if (count > MOST_OPS)
        misuse("a graph of too many ops");
    gpu_lock();
    append_wait(slot, ops, count, who);
    for (int i = 0; i < count && gpu->error == 0; i++)
        put_last(slot, ops[i], who == APPEND_REPLAY);
    const uint64_t ticket = gpu->streams[slot].asked;
    driver_lock_give();
    gpu_ring(BELL_STREAMS);
    gpu_unlock();
    return ticket;
}

CUresult stream_put(int slot, const op *o)
{
    if (capture_of(slot) != NULL)
        return capture_append(slot, o);
    TRY(capture_forbids_legacy(slot));
    (void)stream_append(slot, &o, 1, APPEND_CALL);
    return 0; /* a failure of the op is reported by the next call */
}

bool ticket_done(int slot, uint64_t ticket)
{
    gpu_lock();
    const bool done = gpu->streams[slot].done >= ticket;
    gpu_unlock();
    return done;
}

CUresult ticket_wait(int slot, uint64_t ticket)
{
    const host_wait w = host_wait_begin(slot, "until its ops have ended");
    gpu_lock();
    while (gpu->streams[slot].done < ticket && gpu->error == 0)
        host_wait_on(&w);
    gpu_unlock();
    return gpu->error;
}

/* Takes a slot whose ops have all ended. A new stream in another slot would wait for old ops. */
static int new_slot(int device, unsigned flags, bool high)
{
    gpu_lock();
    int i = gpu_is.devices + 1;
    while (i < MOST_STREAMS && (gpu->streams[i].used || gpu->streams[i].first >= 0))
        i++;
    if (i == MOST_STREAMS)
        misuse("too many streams");
    gpu_stream *s = &gpu->streams[i];
    s->used = true;
    s->non_blocking = (flags & CU_STREAM_NON_BLOCKING) != 0;
    s->device = device;
    s->queue = queue_deal(device, high);
    gpu_unlock();
    gpu_ring(BELL_MAIN);
    return i;
}

CUresult stream_find(CUstream handle, int *out)
{
    const gpu_stream *s = (uintptr_t)handle > 2 ? object_get(OBJECT_STREAM, handle) : NULL;
    int device;
    if ((uintptr_t)handle > 2) {
        *out = s != NULL ? (int)(s - gpu->streams) : 0;
        return s != NULL ? 0 : CUDA_ERROR_INVALID_HANDLE;
    }
    TRY(device_here(&device));
    *out = device + 1;
    if ((uintptr_t)handle == 2) {
        if (own_streams[device] == 0)
            own_streams[device] = new_slot(device, 0, false);
        *out = own_streams[device];
    }
    return 0;
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority)
{
    int device;
    ENTER();
    TRY(device_here(&device));
    if ((flags & ~(unsigned)CU_STREAM_NON_BLOCKING) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *out = object_add(OBJECT_STREAM, &gpu->streams[new_slot(device, flags, priority < 0)]);
    return 0;
}

/* The ops of a destroyed stream still run. */
CUresult cuStreamDestroy_v2(CUstream handle)
{
    int slot;
    ENTER();
    TRY(stream_find(handle, &slot));
    if ((uintptr_t)handle <= 2)
        return CUDA_ERROR_INVALID_HANDLE;
    TRY(capture_refuses(slot));
    (void)object_take(OBJECT_STREAM, handle);
    gpu_lock();
    gpu->streams[slot].used = false;
    gpu_unlock();
    return 0;
}

/* Finds a stream for a query that captures forbid. */
static CUresult look_at(CUstream handle, int *slot)
{
    TRY(stream_find(handle, slot));
    TRY(capture_refuses(*slot));
    TRY(capture_forbids_legacy(*slot));
    return capture_forbids();
}

/* The legacy stream waits for all blocking ones, and so does an op that is appended to it. */
uint64_t stream_asked(int slot)
{
    if (slot == gpu->streams[slot].device + 1)
        return stream_append(slot, (const op *const[]){&(op){.kind = OP_WAIT}}, 1, APPEND_OWN);
    gpu_lock();
    const uint64_t asked = gpu->streams[slot].asked;
    gpu_unlock();
    return asked;
}

CUresult cuStreamQuery(CUstream handle)
{
    int slot;
    ENTER();
    TRY(look_at(handle, &slot));
    gpu_lock();
    const bool legacy = slot == gpu->streams[slot].device + 1;
    bool busy = gpu->streams[slot].first >= 0;
    for (int i = gpu_is.devices + 1; legacy && i < MOST_STREAMS; i++)
        busy |= !gpu->streams[i].non_blocking && gpu->streams[i].first >= 0 &&
                gpu->streams[i].device == gpu->streams[slot].device;
    gpu_unlock();
    return busy ? CUDA_ERROR_NOT_READY : gpu->error;
}

CUresult cuStreamSynchronize(CUstream handle)
{
    int slot;
    ENTER();
    TRY(look_at(handle, &slot));
    return ticket_wait(slot, stream_asked(slot));
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *out)
{
    int slot;
    ENTER();
    TRY(stream_find(handle, &slot));
    *out = context_of(gpu->streams[slot].device);
    return 0;
}

/* Slots are reused, so the handle's own number tells streams apart; a default stream has no other
 * than its slot. */
CUresult cuStreamGetId(CUstream handle, unsigned long long *out)
{
    int slot;
    ENTER();
    TRY(stream_find(handle, &slot));
    *out = (uintptr_t)handle > 2 ? (uintptr_t)handle : (unsigned long long)slot;
    return 0;
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned flags)
{
    int slot;
    bool handled = false;
    ENTER();
    TRY(stream_find(handle, &slot));
    const gpu_event *e = event_find(event_handle);
    if (e == NULL || flags != 0)
        return e == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    TRY(capture_wait(slot, (int)(e - gpu->events), &handled));
    if (handled)
        return 0;
    if (e->cell != NULL) {
        const uint64_t records = __atomic_load_n(&e->cell[0], __ATOMIC_SEQ_CST);
        return stream_put(slot, &(op){.kind = OP_WAIT_VALUE,
                                      .to = (uintptr_t)&e->cell[1],
                                      .value = records,
                                      .width = 8});
    }
    gpu_lock();
    const op o = {.kind = OP_WAIT, .from = (uint64_t)e->stream, .value = e->ticket};
    gpu_unlock();
    return stream_put(slot, &o);
}

/* ---- Values ---- */

static CUresult put_value(CUstream handle, op_kind kind, CUdeviceptr at, uint64_t value,
                          unsigned width, unsigned flags)
{
    int slot;
    TRY(stream_find(handle, &slot));
    const unsigned allowed = kind == OP_WAIT_VALUE ? 3u | (unsigned)CU_STREAM_WAIT_VALUE_FLUSH : 1;
    if (allocation_at(at).uses == 0 || at % width != 0 || (flags & ~allowed) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return stream_put(
        slot, &(op){.kind = kind, .to = at, .value = value, .width = width, .flags = flags});
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr at, uint32_t value, unsigned flags)
{
    ENTER();
    return put_value(stream, OP_WRITE_VALUE, at, value, 4, flags);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr at, uint32_t value, unsigned flags)
{
    ENTER();
    return put_value(stream, OP_WAIT_VALUE, at, value, 4, flags);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr at, uint64_t value, unsigned flags)
{
    ENTER();
    return put_value(stream, OP_WRITE_VALUE, at, value, 8, flags);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr at, uint64_t value, unsigned flags)
{
    ENTER();
    return put_value(stream, OP_WAIT_VALUE, at, value, 8, flags);
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *data)
{
    int slot;
    ENTER();
    TRY(stream_find(handle, &slot));
    return stream_put(slot, &(op){.kind = OP_HOST, .function = function, .data = data});
}
