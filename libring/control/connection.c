/* SPDX-License-Identifier: Apache-2.0
 *
 * Receives and sends the messages of one connection. A message that has arrived in part is kept
 * until the rest arrives, and a message that was sent in part until the socket accepts more bytes.
 */
#include "connection.h"

#include "membership_state.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/socket.h>

static void on_ready(control_source *s)
{
    connection *c = (connection *)s;
    connection_read(c);
    connection_write(c);
    c->member->dispatch->settle(c->member);
}

void connection_join_tree(connection *c)
{
    c->edge = true;
    c->heard = clock_now();
    c->beat = 0;
}

void connection_free(connection *c)
{
    sodium_memzero(&c->keys, sizeof c->keys);
    free(c);
}

connection *connection_new(membership *m, int fd, const handshake *h, bool edge)
{
    connection *c = calloc(1, sizeof *c);
    if (c == NULL) {
        fd_close(&fd);
        return NULL;
    }
    c->source = (control_source){.fd = fd_guard(fd), .client = &m->client, .ready = on_ready};
    c->member = m;
    c->peer = handshake_peer(h);
    handshake_derive(h, &c->keys);
    c->beat = CONTROL_NEVER;
    c->heard = clock_now();
    if (edge)
        connection_join_tree(c);
    c->sent = sizeof c->out;
    if (control_watch(&c->source, EPOLLIN) != RING_OK) {
        control_close(&c->source);
        connection_free(c);
        return NULL;
    }
    c->next = m->connections;
    m->connections = c;
    return c;
}

static bool would_block(void)
{
    return errno == EAGAIN || errno == EINTR;
}

/* Authenticates the complete message in c->in, and passes it on. */
static void take_message(connection *c)
{
    const control_dispatch *dispatch = c->member->dispatch;
    c->got = 0;
    c->no_message_yet = false;
    if (c->distrusted)
        return;
    c->distrusted = !control_message_is_genuine(&c->in, c->keys.in, c->messages_in++);
    if (!c->distrusted)
        dispatch->receive(c->member, c, &c->in.message);
    else
        dispatch->distrust(
            c->member, c, RING_ERR_SYSTEM,
            "sent a control message that was altered on the way: a proxy, an adapter or a "
            "driver corrupts data, or a third party forges messages");
}

void connection_read(connection *c)
{
    while (connection_is_open(c)) {
        const ssize_t got = recv(c->source.fd, (char *)&c->in + c->got, sizeof c->in - c->got,
                                 MSG_DONTWAIT);
        if (got < 0 && would_block())
            return;
        if (got <= 0) {
            c->member->dispatch->on_close(c->member, c);
            control_close(&c->source);
            return;
        }
        c->heard = clock_now();
        c->got += (size_t)got;
        if (c->got < sizeof c->in)
            continue;
        take_message(c);
    }
}

bool connection_is_busy(const connection *c)
{
    return c->sent < sizeof c->out;
}

/* Sends bytes of c->out. @return false if the socket is full. */
static bool send_some(connection *c)
{
    const char *at = (const char *)&c->out + c->sent;
    const ssize_t put = send(c->source.fd, at, sizeof c->out - c->sent,
                             MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0 && would_block())
        return false;
    c->send_closed = put < 0; /* reading continues: a goodbye may be among the unread messages */
    c->sent += put > 0 ? (size_t)put : 0;
    c->member->sent.bytes += put > 0 ? (uint64_t)put : 0;
    return true;
}

/* @return true if c->out has bytes to send, after composing the next message if necessary. */
static bool has_output(connection *c)
{
    if (connection_is_busy(c))
        return true;
    if (!c->member->dispatch->compose(c->member, c, &c->out.message))
        return false;
    c->member->sent.beats += c->out.message.kind == CONTROL_BEAT;
    control_message_seal(&c->out, c->keys.out, c->messages_out++);
    c->sent = 0;
    c->member->sent.messages++;
    return true;
}

void connection_write(connection *c)
{
    bool blocked = false;
    while (connection_is_open(c) && !c->send_closed && !blocked && has_output(c))
        blocked = !send_some(c);
    if (!connection_is_open(c))
        return;
    if (control_watch(&c->source, blocked ? EPOLLIN | EPOLLOUT : EPOLLIN) != RING_OK)
        log_debug("%s", fail_text());
}

void connection_shut(connection *c)
{
    if (c->send_closed || !connection_is_open(c))
        return;
    shutdown(c->source.fd, SHUT_WR);
    c->send_closed = true;
}
