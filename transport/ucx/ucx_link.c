/* SPDX-License-Identifier: Apache-2.0
 * Records the failures, completed gets and arrived frames of a link, as ucx_link.h describes. No
 * message is sent here. */
#include "ucx_link.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- Failures -------------------------------------------------------------------------------- */

bool ucx_is_alive(const ucx_link *l)
{
    return l->state == RING_OK || l->state == RING_IN_PROGRESS;
}

void ucx_rouse(ucx_link *l)
{
    const uint64_t one = 1;
    if (!l->sleep.armed)
        return;
    l->sleep.armed = false;
    const ssize_t ignored = write(l->sleep.wake, &one, sizeof one);
    (void)ignored;
}

void ucx_gets_end(ucx_link *l, ring_status status)
{
    for (size_t i = 0; i < UCX_GETS; i++) {
        if (l->gets.own[i].over == NULL || l->gets.own[i].lands)
            continue;
        ticket_close(l->gets.own[i].over, status);
        l->gets.own[i] = (ucx_get){0};
        l->gets.over++;
    }
}

void ucx_doom(ucx_link *l, ring_status status, const char *format, ...)
{
    va_list values;
    if (l->doom != RING_OK)
        return;
    l->doom = status;
    va_start(values, format);
    (void)vsnprintf(l->why, sizeof l->why, format, values);
    va_end(values);
    ucx_gets_end(l, status);
    ucx_rouse(l);
}

bool ucx_has_left(const ucx_link *l)
{
    char byte;
    return l->socket.ended || recv(l->socket.fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
}

void ucx_got(ucx_link *l, uint64_t number, ring_status status)
{
    ucx_get *get = &l->gets.own[number % UCX_GETS];
    if (get->over != NULL)
        ticket_close(get->over, status);
    *get = (ucx_get){0};
    l->gets.over++;
    ucx_rouse(l);
}

/* ---- Status that is due ---------------------------------------------------------------------- */

void ucx_make_due(ucx_link *l)
{
    if (l->due)
        return;
    l->due = true;
    l->next_due = hub.due;
    hub.due = l;
}

void ucx_owe(ucx_link *l)
{
    if (!l->recv.owes)
        l->recv.owed_since = hub.passes;
    l->recv.owes = true;
    ucx_make_due(l);
}

/* ---- Frames ---------------------------------------------------------------------------------- */

void ucx_count_done(ucx_link *l)
{
    while (l->send.slots_done < l->send.slots && l->out->done[l->send.slots_done % UCX_SLOTS])
        l->send.slots_done++;
}

const transport_frame *ucx_oldest(const ucx_link *l)
{
    return &l->in->slot[l->recv.slots % UCX_SLOTS];
}

bool ucx_has_frame(const ucx_link *l)
{
    return __atomic_load_n(&ucx_oldest(l)->stamp, __ATOMIC_ACQUIRE) == (uint32_t)l->recv.slots + 1;
}
