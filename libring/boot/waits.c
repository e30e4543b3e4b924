/* SPDX-License-Identifier: Apache-2.0
 * A growing array of descriptors for poll(). */
#include "waits.h"

#include <errno.h>
#include <stdlib.h>

void waits_start(waits *w, double until)
{
    w->count = 0;
    w->until = until;
}

ring_status waits_add(waits *w, int fd, short events)
{
    if (w->count == w->room) {
        const size_t room = w->room > 0 ? 2 * w->room : 128;
        struct pollfd *entries = realloc(w->entries, room * sizeof *entries);
        if (entries == NULL)
            return fail(RING_ERR_MEMORY, "waiting for %zu sockets", room);
        w->entries = entries;
        w->room = room;
    }
    w->entries[w->count++] = (struct pollfd){.fd = fd, .events = events};
    return RING_OK;
}

void waits_due(waits *w, double moment)
{
    if (moment < w->until)
        w->until = moment;
}

ring_status waits_poll(waits *w)
{
    if (poll(w->entries, w->count, clock_ms_until(w->until, 60000)) < 0 && errno != EINTR)
        return fail(RING_ERR_SYSTEM, "poll: %m");
    return RING_OK;
}

void waits_free(waits *w)
{
    free(w->entries);
    *w = (waits){0};
}
