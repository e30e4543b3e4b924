/* SPDX-License-Identifier: Apache-2.0
 * Events. A recorded event names a stream and a ticket, and has occurred when the stream has ended
 * that ticket. An interprocess event counts its records in a cell that all processes map. */
#include "gpu.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

gpu_event *event_find(CUevent handle)
{
    return object_get(OBJECT_EVENT, handle);
}

/* In the GPU process. */
void event_done(const op *o, int slot)
{
    gpu_event *e = &gpu->events[o->from];
    if (o->to != 0) {
        uint64_t *done = (uint64_t *)o->to;
        if (__atomic_load_n(done, __ATOMIC_SEQ_CST) < o->value)
            __atomic_store_n(done, o->value, __ATOMIC_SEQ_CST);
        return;
    }
    gpu_lock();
    if (e->stream == slot && e->ticket == o->ticket)
        e->at_ns = (uint64_t)(gpu_now() * 1e9);
    gpu_unlock();
}

gpu_event *event_new(int device, unsigned flags)
{
    gpu_lock();
    int i = 0;
    while (i < MOST_EVENTS && gpu->events[i].used)
        i++;
    if (i == MOST_EVENTS)
        misuse("too many events");
    gpu->events[i] = (gpu_event){.used = true, .device = device, .flags = flags};
    gpu_unlock();
    capture_forget_event(i);
    return &gpu->events[i];
}

CUresult cuEventCreate(CUevent *out, unsigned flags)
{
    const bool shared = (flags & CU_EVENT_INTERPROCESS) != 0;
    int device;
    ENTER();
    TRY(device_here(&device));
    if (flags > 7 || (shared && (flags & CU_EVENT_DISABLE_TIMING) == 0))
        return CUDA_ERROR_INVALID_VALUE;
    gpu_event *e = event_new(device, flags);
    if (shared)
        e->cell = memset((void *)staging_new(2 * sizeof *e->cell), 0, 2 * sizeof *e->cell);
    *out = object_add(OBJECT_EVENT, e);
    return 0;
}

CUresult cuEventDestroy_v2(CUevent handle)
{
    ENTER();
    gpu_event *e = object_take(OBJECT_EVENT, handle);
    if (e == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    const allocation cell = allocation_at((uintptr_t)e->cell);
    if (cell.uses > 0 &&
        cell.file >= 0) { /* another process's. A cell of this process is kept for the others */
        TRY(gpu_drain(e->device));
        TRY(allocation_unmap(&cell));
        mmap((void *)page_of(cell.start), PAGE_BYTES, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
    gpu_lock();
    e->used = false;
    gpu_unlock();
    return 0;
}

static CUresult record_in(gpu_event *e, int slot)
{
    op o = {.kind = OP_RECORD, .from = (uint64_t)(e - gpu->events)};
    if (e->cell != NULL) {
        o.to = (uintptr_t)&e->cell[1];
        o.value = __atomic_add_fetch(&e->cell[0], 1, __ATOMIC_SEQ_CST);
    }
    capture_forget_event((int)o.from);
    return stream_put(slot, &o);
}

CUresult cuEventRecord(CUevent handle, CUstream stream)
{
    int slot;
    ENTER();
    TRY(stream_find(stream, &slot));
    gpu_event *e = event_find(handle);
    if (e == NULL || e->device != gpu->streams[slot].device)
        return CUDA_ERROR_INVALID_HANDLE;
    if (capture_of(slot) != NULL)
        return capture_record(slot, (int)(e - gpu->events));
    return record_in(e, slot);
}

static CUresult look_at(CUevent handle, gpu_event **out)
{
    *out = event_find(handle);
    if (*out == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (capture_has_event((int)(*out - gpu->events)))
        return CUDA_ERROR_CAPTURED_EVENT;
    return capture_forbids();
}

static bool is_over(const gpu_event *e)
{
    if (e->cell != NULL)
        return __atomic_load_n(&e->cell[1], __ATOMIC_SEQ_CST) >=
               __atomic_load_n(&e->cell[0], __ATOMIC_SEQ_CST);
    return ticket_done(e->stream, e->ticket);
}

CUresult cuEventQuery(CUevent handle)
{
    gpu_event *e;
    ENTER();
    TRY(look_at(handle, &e));
    return is_over(e) ? gpu->error : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent handle)
{
    gpu_event *e;
    const double since = gpu_now();
    ENTER();
    TRY(look_at(handle, &e));
    if (e->cell == NULL)
        return ticket_wait(e->stream, e->ticket);
    const uint64_t records = __atomic_load_n(&e->cell[0], __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&e->cell[1], __ATOMIC_SEQ_CST) < records && gpu->error == 0) {
        nanosleep(&(struct timespec){.tv_nsec = 100 * 1000}, NULL); /* no bell of the other's */
        if (gpu_now() - since > gpu_is.deadline)
            misuse("cuEventSynchronize() waits for ever for an event of another process "
                   "(FAKE_CUDA_DEADLINE)");
    }
    return gpu->error;
}

CUresult cuEventElapsedTime(float *ms, CUevent start_handle, CUevent end_handle)
{
    gpu_event *start, *end;
    ENTER();
    TRY(look_at(start_handle, &start));
    TRY(look_at(end_handle, &end));
    const unsigned flags = start->flags | end->flags;
    if ((flags & CU_EVENT_DISABLE_TIMING) != 0 || start->ticket == 0 || end->ticket == 0)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!is_over(start) || !is_over(end))
        return CUDA_ERROR_NOT_READY;
    *ms = (float)((double)(int64_t)(end->at_ns - start->at_ns) * 1e-6);
    return 0;
}
