/* SPDX-License-Identifier: Apache-2.0
 * Implements the wait of ringrun's loop with poll(). */
#include "poll_set.h"

#include <stdlib.h>

enum { LONGEST_WAIT_MS = 60000 };

struct poll_entry {
    void (*handle)(void *context);
    void *context;
};

void poll_set_clear(poll_set *set)
{
    set->count = 0;
}

void poll_set_add(poll_set *set, int fd, short events, void (*handle)(void *context), void *context)
{
    if (set->count == set->room) {
        set->room = max_size(16, 2 * set->room);
        set->fds = memory_grow(set->fds, set->room, sizeof *set->fds);
        set->entries = memory_grow(set->entries, set->room, sizeof *set->entries);
    }
    set->fds[set->count] = (struct pollfd){.fd = fd, .events = events};
    set->entries[set->count++] = (struct poll_entry){handle, context};
}

void poll_set_run(poll_set *set, double deadline)
{
    if (poll(set->fds, set->count, clock_ms_until(deadline, LONGEST_WAIT_MS)) <= 0)
        return;
    for (size_t i = 0; i < set->count; i++) {
        if (set->fds[i].revents != 0)
            set->entries[i].handle(set->entries[i].context);
    }
}

void poll_set_free(poll_set *set)
{
    free(set->fds);
    free(set->entries);
    *set = (poll_set){0};
}
