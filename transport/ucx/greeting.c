/* SPDX-License-Identifier: Apache-2.0
 *
 * Exchanges the worker's address and the link's token over the link's authenticated socket, and
 * agrees with the peer on how to connect. The socket stays open afterwards: its end of file shows
 * that the peer has ended. */
#include "ucx.h"
#include "ucx_link.h"
#include "ucx_pass.h"

#include <errno.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VERSION = 1 };

static const char magic[8] = "ringucx";

/* ---- The socket ------------------------------------------------------------------- */

static bool not_now(ssize_t result)
{
    return result < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Sends as many queued bytes as the socket accepts. */
static void push_text(ucx_link *l)
{
    while (l->opening.out_done < l->opening.out_bytes) {
        const ssize_t put = send(l->socket.fd, l->opening.out_text + l->opening.out_done,
                                 l->opening.out_bytes - l->opening.out_done,
                                 MSG_DONTWAIT | MSG_NOSIGNAL);
        if (not_now(put))
            return;
        if (put <= 0) {
            ucx_doom(l, RING_ERR_PEER, "sending an opening message to the peer: %m");
            return;
        }
        l->opening.out_done += (size_t)put;
    }
}

/* Queues bytes, and sends as many as the socket accepts. */
static void send_text(ucx_link *l, const void *text, size_t bytes)
{
    unsigned char *longer = realloc(l->opening.out_text, l->opening.out_bytes + bytes);
    if (longer == NULL) {
        ucx_doom(l, RING_ERR_MEMORY, "no memory for a greeting");
        return;
    }
    memcpy(longer + l->opening.out_bytes, text, bytes);
    l->opening.out_text = longer;
    l->opening.out_bytes += bytes;
    push_text(l);
}

/* @param way  UCX_BY_SOCKET, UCX_LISTENS or UCX_BY_ADDRESS. */
static void send_note(ucx_link *l, int way)
{
    ucx_note note = {.way = way};
    if (way == UCX_LISTENS) {
        socklen_t length = sizeof note.at;
        (void)getsockname(l->socket.fd, (struct sockaddr *)&note.at, &length);
        note.length = (uint32_t)length;
        if (note.at.ss_family == AF_INET6)
            ((struct sockaddr_in6 *)&note.at)->sin6_port =
                ((const struct sockaddr_in6 *)&hub.listens_at)->sin6_port;
        else
            ((struct sockaddr_in *)&note.at)->sin_port =
                ((const struct sockaddr_in *)&hub.listens_at)->sin_port;
    }
    send_text(l, &note, sizeof note);
}

ring_status ucx_greet(ucx_link *l)
{
    const char *wish = getenv("RING_UCX_SOCKADDR");
    l->opening.by_socket = wish == NULL || strcmp(wish, "0") != 0;
    ucx_greeting mine = {.version = VERSION, .link = l->number};
    mine.address_bytes = (uint32_t)hub.address_bytes;
    memcpy(mine.magic, magic, sizeof magic);
    memcpy(mine.hub, hub.id, sizeof mine.hub);
    randombytes_buf(l->token, sizeof l->token);
    memcpy(mine.token, l->token, sizeof mine.token);
    if (hub.address_bytes > UCX_ADDRESS_MOST)
        return fail(RING_ERR_UNSUPPORTED,
                    "the address of UCX's worker has %zu bytes, and at most %d are allowed; choose "
                    "fewer transports or devices with UCX_TLS and UCX_NET_DEVICES",
                    hub.address_bytes, UCX_ADDRESS_MOST);
    send_text(l, &mine, sizeof mine);
    send_text(l, hub.address, hub.address_bytes);
    if (!l->opening.by_socket)
        send_note(l, UCX_BY_ADDRESS);
    return l->doom == RING_OK ? RING_OK : fail(l->doom, "%s", l->why);
}

/* Reads the next message from the socket. @return true when all its @p bytes are in in_text. */
static bool read_text(ucx_link *l, size_t bytes)
{
    unsigned char *room = realloc(l->opening.in_text, max_size(bytes, 1));
    if (room == NULL) {
        ucx_doom(l, RING_ERR_MEMORY, "no memory for the peer's greeting");
        return false;
    }
    l->opening.in_text = room;
    while (l->opening.in_done < bytes) {
        const ssize_t got = recv(l->socket.fd, room + l->opening.in_done,
                                 bytes - l->opening.in_done, MSG_DONTWAIT);
        if (not_now(got))
            return false;
        if (got <= 0) {
            l->socket.ended = true;
            ucx_doom(l, RING_ERR_PEER, "the peer closed the connection");
            return false;
        }
        l->opening.in_done += (size_t)got;
    }
    return true;
}

/* ---- A route ---------------------------------------------------------------------- */

static bool is_self(const ucx_link *l)
{
    return memcmp(l->opening.theirs.hub, hub.id, sizeof hub.id) == 0;
}

/* Uses the route, and sends UCX_HELLO over it. */
static void take_route(ucx_link *l, ucx_route *route)
{
    ucx_posting *p;
    ucx_route_use(l, route);
    if ((p = ucx_posting_new(l)) != NULL)
        ucx_post(p, UCX_HELLO, NULL, 0);
}

static void doom_by(ucx_link *l, const char *what, ucs_status_t status)
{
    ucx_doom(l, RING_ERR_PEER,
             "UCX: %s: %s; does UCX_TLS on this host allow a network that reaches the peer?", what,
             ucx.ucs_status_string(status));
}

static void go_by_address(ucx_link *l, const char *what, ucs_status_t why);

/* Connects by socket address: the hub with the lower id listens, and the other one connects to it.
 * @param what, why  the step and status of a failure to connect by worker address. UCS_OK: that was
 *                   not tried. */
static void go_by_socket(ucx_link *l, const char *what, ucs_status_t why)
{
    l->opening.by_socket = true;
    if (l->opening.no_socket) {
        doom_by(l, what, why);
        return;
    }
    const bool is_lower = memcmp(hub.id, l->opening.theirs.hub, sizeof hub.id) < 0;
    if (!is_lower || l->opening.listens)
        return;
    struct sockaddr_storage own = {0};
    socklen_t length = sizeof own;
    (void)getsockname(l->socket.fd, (struct sockaddr *)&own, &length);
    const ucs_status_t status = ucx_listen(own.ss_family);
    l->opening.listens = status == UCS_OK;
    l->opening.no_socket = !l->opening.listens;
    send_note(l, l->opening.listens ? UCX_LISTENS : UCX_BY_ADDRESS);
    if (l->opening.no_socket)
        go_by_address(l, "listening for the peer", status);
}

/* Connects by the address of the peer's worker, or through the route that other links use.
 * @param what, why  the step and status of a failure to connect by socket address, or UCS_OK. */
static void go_by_address(ucx_link *l, const char *what, ucs_status_t why)
{
    ucx_route *route = ucx_route_find(l->opening.theirs.hub);
    ucs_status_t status = why;
    l->opening.by_socket = false;
    if (l->opening.no_address) {
        doom_by(l, what, why);
        return;
    }
    if (route == NULL)
        status = ucx_route_by_address(l->opening.theirs.hub, l->opening.address, &route);
    if (route != NULL) {
        take_route(l, route);
        return;
    }
    log_debug("ucx link to rank %d: cannot make an endpoint from the address of its worker: %s",
              l->head.peer, ucx.ucs_status_string(status));
    l->opening.no_address = true;
    if (is_self(l)) {
        doom_by(l, "connecting within this process", status);
        return;
    }
    send_note(l, UCX_BY_SOCKET);
    go_by_socket(l, "connecting to the peer's worker", status);
}

/* Connects to the peer, which listens. */
static void call_listener(ucx_link *l, const ucx_note *note)
{
    ucx_route *route = ucx_route_find(l->opening.theirs.hub);
    ucs_status_t status = UCS_OK;
    l->opening.by_socket = true;
    if (note->length > sizeof note->at)
        status = UCS_ERR_INVALID_ADDR;
    else if (route == NULL || !route->by_socket)
        status = ucx_route_by_socket(l->opening.theirs.hub, note, &route);
    if (status == UCS_OK) {
        take_route(l, route);
        return;
    }
    l->opening.no_socket = true;
    send_note(l, UCX_BY_ADDRESS);
    go_by_address(l, "connecting to the peer's listener", status);
}

/* Handles a note of the peer, which usually reports that connecting in one way has failed. */
static void take_note(ucx_link *l, const ucx_note *note)
{
    ucx_route *route = ucx_route_find(l->opening.theirs.hub);
    if (is_self(l))
        return;
    switch (note->way) {
    case UCX_LISTENS:
        call_listener(l, note);
        break;
    case UCX_BY_SOCKET: /* the peer could not connect by address */
        l->opening.no_address = true;
        if (route != NULL && !route->by_socket)
            route->retired = true;
        go_by_socket(l, "connecting to the peer's worker", UCS_ERR_UNREACHABLE);
        break;
    case UCX_BY_ADDRESS:
        l->opening.no_socket = true;
        if (l->route == NULL)
            go_by_address(l, "connecting to the peer's socket", UCS_ERR_UNREACHABLE);
        break;
    default:
        ucx_doom(l, RING_ERR_PEER, "the peer sent an opening message of unknown kind %d",
                 (int)note->way);
        break;
    }
}

/* ---- Progress --------------------------------------------------------------------- */

static void take_greeting(ucx_link *l)
{
    if (l->opening.theirs.version == 0) {
        if (!read_text(l, sizeof l->opening.theirs))
            return;
        memcpy(&l->opening.theirs, l->opening.in_text, sizeof l->opening.theirs);
        l->opening.in_done = 0;
        if (memcmp(l->opening.theirs.magic, magic, sizeof magic) != 0 ||
            l->opening.theirs.version != VERSION || l->opening.theirs.address_bytes == 0 ||
            l->opening.theirs.address_bytes > UCX_ADDRESS_MOST) {
            ucx_doom(l, RING_ERR_PEER,
                     "the peer's first message is not a ucx greeting of this version; run the same "
                     "libring on all ranks");
            return;
        }
    }
    if (!read_text(l, l->opening.theirs.address_bytes))
        return;
    l->opening.in_done = 0;
    l->opening.greeted = true;
    l->opening.address = l->opening.in_text;
    l->opening.in_text = NULL;
    if (l->opening.by_socket && !is_self(l))
        go_by_socket(l, NULL, UCS_OK);
    else
        go_by_address(l, NULL, UCS_OK);
}

void ucx_greeting_move(ucx_link *l)
{
    push_text(l);
    if (!l->opening.greeted && l->doom == RING_OK)
        take_greeting(l);
    while (l->opening.greeted && l->doom == RING_OK && !l->opening.heard) {
        if (!read_text(l, sizeof(ucx_note)))
            break;
        ucx_note note;
        memcpy(&note, l->opening.in_text, sizeof note);
        l->opening.in_done = 0;
        take_note(l, &note);
    }
    if (l->opening.heard && l->opening.helloed && l->opening.out_done == l->opening.out_bytes &&
        l->doom == RING_OK && l->state == RING_IN_PROGRESS)
        l->state = RING_OK;
}

void ucx_greeting_look(ucx_link *l)
{
    char waste[sizeof(ucx_note)];
    const ssize_t got = recv(l->socket.fd, waste, sizeof waste, MSG_DONTWAIT);
    l->sleep.quiet = 0;
    if (l->socket.ended || got > 0 || not_now(got)) /* a late note contains nothing new */
        return;
    l->socket.ended = true;
    for (int i = 0; i < 64; i++) /* receives the frames that the peer sent before it closed */
        ucx_pass();
    ucx_doom(l, RING_ERR_PEER, "the peer closed the connection");
}
