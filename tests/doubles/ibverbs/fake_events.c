/* SPDX-License-Identifier: Apache-2.0
 * Implements queues of events. The descriptor counts them, and each read of it takes one. */
#include "fake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

bool fake_events_open(fake_events *events)
{
    memset(events, 0, sizeof *events);
    events->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    return events->fd >= 0;
}

void fake_events_close(fake_events *events)
{
    close(events->fd);
    free(events->list);
}

static void reserve(fake_events *events)
{
    if (events->count < events->capacity)
        return;
    events->capacity = events->capacity > 0 ? 2 * events->capacity : 16;
    events->list = realloc(events->list, events->capacity * sizeof *events->list);
    if (events->list == NULL)
        abort();
}

void fake_events_add(fake_events *events, void *of, int type)
{
    const uint64_t one = 1;
    reserve(events);
    events->list[events->count++] = (fake_event){.of = of, .type = type};
    if (write(events->fd, &one, sizeof one) != sizeof one)
        abort();
}

static void remove_at(fake_events *events, size_t i)
{
    events->count--;
    memmove(&events->list[i], &events->list[i + 1], (events->count - i) * sizeof *events->list);
}

/* The count may have been read by a taker that waits for the lock: it finds nothing then. */
static void take_back_one(const fake_events *events)
{
    uint64_t one;
    const struct iovec to = {.iov_base = &one, .iov_len = sizeof one};
    (void)!preadv2(events->fd, &to, 1, -1, RWF_NOWAIT);
}

void fake_events_drop(fake_events *events, const void *of)
{
    for (size_t i = events->count; i-- > 0;)
        if (events->list[i].of == of) {
            remove_at(events, i);
            take_back_one(events);
        }
}

bool fake_events_take(fake_events *events, fake_event *out)
{
    uint64_t one;
    while (read(events->fd, &one, sizeof one) == sizeof one) {
        fake_lock();
        if (events->count > 0) {
            *out = events->list[0];
            remove_at(events, 0);
            return true;
        }
        fake_unlock();
    }
    return false;
}
