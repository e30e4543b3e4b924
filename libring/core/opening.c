/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens links to peers. The first call that uses a channel requests a socket over the control
 * channel (placeholder_link.c). Control delivers the socket to both ranks, and each of them opens
 * its end of the link in the next engine turn.
 *
 * A peer may send eager messages while no thread of this rank waits in a call. Each queued socket,
 * and each link whose handshake is not complete, therefore counts as an orphan, so that the
 * progress thread opens the link.
 */
#include "placeholder_link.h"
#include "progress_thread.h"
#include "sleep.h"

#include <stdlib.h>
#include <string.h>

/* ---- Sockets that arrived ---------------------------------------------------------------- */

typedef struct arrival_note {
    struct arrival_note *next;
    int32_t peer;
    uint16_t traffic, index, transport;
    ring_status status; /* RING_OK, or the reason why there is no socket */
    control_socket socket;
    char why[240];
} arrival_note;

struct opening {
    pthread_mutex_t lock;
    _Atomic bool any;
    arrival_note *first, **end;
};

/* Control calls this, with its lock held, when a socket has arrived or could not be made.
 * @return true if this communicator takes the socket. */
static bool note_arrival(void *context, int peer, const control_purpose *purpose,
                         ring_status status, const control_socket *socket)
{
    ring_comm *comm = context;
    struct opening *o = comm->opening;
    arrival_note *note = calloc(1, sizeof *note);
    if (note == NULL || purpose->traffic >= TRAFFIC_KINDS ||
        purpose->index >= SETTINGS_MOST_CHANNELS) {
        free(note);
        return false;
    }
    *note = (arrival_note){.peer = peer,
                           .traffic = purpose->traffic,
                           .index = purpose->index,
                           .transport = purpose->transport,
                           .status = status,
                           .socket = {.fd = -1}};
    if (socket != NULL)
        note->socket = *socket;
    if (status != RING_OK)
        text_format(note->why, sizeof note->why, "%s", fail_text());
    orphans_count(comm, 1);
    pthread_mutex_lock(&o->lock);
    *o->end = note;
    o->end = &note->next;
    atomic_store(&o->any, true);
    pthread_mutex_unlock(&o->lock);
    sleep_wake(comm);
    progress_call(comm);
    return true;
}

static void drop_note(arrival_note *note)
{
    explicit_bzero(note, sizeof *note); /* it contains keys */
    free(note);
}

static arrival_note *take_notes(struct opening *o)
{
    pthread_mutex_lock(&o->lock);
    arrival_note *first = o->first;
    o->first = NULL;
    o->end = &o->first;
    atomic_store(&o->any, false);
    pthread_mutex_unlock(&o->lock);
    return first;
}

/* ---- Opening ----------------------------------------------------------------------------- */

static transport_keys keys_of(const ring_comm *comm, const control_socket *socket)
{
    transport_keys keys = {.cipher = comm->settings.encrypt == ENCRYPT_AES256GCM
                                         ? TRANSPORT_AES256GCM
                                         : TRANSPORT_CHACHA20};
    _Static_assert((int)CONTROL_SOCKET_KEY == (int)TRANSPORT_KEY, "a socket's keys are its link's");
    memcpy(keys.out, socket->keys.out, sizeof keys.out);
    memcpy(keys.in, socket->keys.in, sizeof keys.in);
    return keys;
}

static ring_status open_link(const ring_comm *comm, const arrival_note *note, transport_link **out)
{
    uint16_t number;
    const transport *t = links_strongest(comm, comm->rank, note->peer, &number);
    transport_keys keys = keys_of(comm, &note->socket);
    /* A link of RING_FAULT shares no descriptor with other links of the pair. */
    const bool misbehaves = comm->settings.fault[0] != '\0';
    const transport_pair pair = {.owner = comm->world->start,
                                 .peer = comm->world->cards[note->peer].rank,
                                 .wake = sleep_wake,
                                 .context = (void *)(uintptr_t)comm};
    const transport_peer ends = {.rank = comm->rank,
                                 .peer = note->peer,
                                 .pair = misbehaves ? (transport_pair){0} : pair,
                                 .channel = note->index,
                                 .ib = &comm->settings.ib,
                                 .fd = note->socket.fd,
                                 .peer_timeout = comm->settings.peer_timeout,
                                 .checksum = comm->settings.checksum,
                                 .keys = comm->settings.encrypt != ENCRYPT_NO ? &keys : NULL};
    transport_link *l;
    ring_assert(number == note->transport);
    const ring_status status = t->open(&ends, &l);
    explicit_bzero(&keys, sizeof keys);
    RING_TRY(status);
    if (misbehaves)
        return transport_fault_wrap(l, comm->settings.fault, out);
    *out = l;
    return RING_OK;
}

static ring_status attach(ring_comm *comm, arrival_note *note, channel **on)
{
    const ring_status status = channel_get(comm, (enum channel_traffic)note->traffic, note->index,
                                           note->peer, on);
    if (status != RING_OK) {
        fd_close(&note->socket.fd);
        return status;
    }
    (*on)->dialed = true;
    if (note->status != RING_OK)
        return fail(note->status, "cannot connect to rank %d (%s): %s%s", note->peer,
                    comm_host(comm, note->peer), note->why,
                    note->status == RING_ERR_TIMEOUT
                        ? "; does a firewall block ports between the hosts?"
                        : "");
    if ((*on)->link != placeholder_link()) {
        fd_close(&note->socket.fd);
        return RING_OK;
    }
    RING_TRY(open_link(comm, note, &(*on)->link));
    orphans_count(comm, 1);
    (*on)->next_greeting = comm->greeting;
    comm->greeting = *on;
    return RING_OK;
}

/* Advances the handshakes of links. Removes the links that are now open or broken from the list. */
static void push_greetings(ring_comm *comm, bool *moved)
{
    for (channel **at = &comm->greeting; *at != NULL;) {
        channel *c = *at;
        if (c->link->transport->progress(c->link) == RING_IN_PROGRESS) {
            at = &c->next_greeting;
            continue;
        }
        *at = c->next_greeting;
        orphans_count(comm, -1);
        sleep_wake_callers(comm); /* the link's descriptor may have changed */
        *moved = true;
    }
}

static void take_sockets(ring_comm *comm, bool *moved)
{
    arrival_note *next;
    for (arrival_note *note = take_notes(comm->opening); note != NULL; note = next) {
        channel *on = NULL;
        next = note->next;
        const ring_status status = attach(comm, note, &on);
        if (status != RING_OK)
            comm_fail_by(comm, on != NULL ? channel_first_waiter(on) : NULL, on, status);
        orphans_count(comm, -1);
        drop_note(note);
        *moved = true;
    }
}

void opening_turn(ring_comm *comm, bool *moved)
{
    struct opening *o = comm->opening;
    if (atomic_load_explicit(&o->any, memory_order_relaxed))
        take_sockets(comm, moved);
    if (comm->greeting != NULL)
        push_greetings(comm, moved);
}

/* ---- Creation and destruction ------------------------------------------------------------ */

ring_status opening_new(ring_comm *comm)
{
    struct opening *o = calloc(1, sizeof *o);
    if (o == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while creating the communicator");
    pthread_mutex_init(&o->lock, NULL);
    o->end = &o->first;
    comm->opening = o;
    control_set_sink(comm->world, note_arrival, comm);
    return RING_OK;
}

void opening_stop(ring_comm *comm)
{
    arrival_note *next;
    if (comm->opening == NULL)
        return;
    control_set_sink(comm->world, NULL, NULL);
    for (arrival_note *note = take_notes(comm->opening); note != NULL; note = next) {
        next = note->next;
        fd_close(&note->socket.fd);
        orphans_count(comm, -1);
        drop_note(note);
    }
    for (const channel *c = comm->greeting; c != NULL; c = c->next_greeting)
        orphans_count(comm, -1);
    pthread_mutex_destroy(&comm->opening->lock);
    free(comm->opening);
    comm->opening = NULL;
    comm->greeting = NULL;
}
