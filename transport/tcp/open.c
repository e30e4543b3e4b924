/* SPDX-License-Identifier: Apache-2.0
 * Opens and closes tcp links, and defines the table of the transport's functions. */
#include "tcp.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

static ring_status socket_prepare(int fd)
{
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
        return fail(RING_ERR_SYSTEM, "fcntl on a tcp link's socket: %m");
    /* TCP_NODELAY fails on sockets that are not TCP, which never wait to fill a packet. The sizes
     * of the kernel's buffers are left alone: setting a size stops automatic growth, and most hosts
     * allow only small ones. */
    const int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return RING_OK;
}

/* Reads all received bytes: closing a socket with unread bytes would reset the connection and
 * discard bytes that the peer has not read yet. */
static void tcp_close(transport_link *link)
{
    tcp_link *l = (tcp_link *)link;
    char waste[4096];
    shutdown(l->fd, SHUT_WR);
    while (recv(l->fd, waste, sizeof waste, MSG_DONTWAIT) > 0)
        continue;
    fd_close(&l->wake);
    fd_close(&l->fd);
    tcp_cipher_free(l->cipher);
    free(l->backlog.bytes);
    free(l->buffer);
    free(l);
}

/* The buffer is allocated separately, so that unused pages are never committed. */
static tcp_link *link_new(const transport_peer *peer)
{
    tcp_link *l = calloc(1, sizeof *l);
    if (l == NULL)
        return NULL;
    l->head = (transport_link){.transport = &transport_tcp, .peer = peer->peer};
    l->fd = fd_guard(peer->fd);
    l->wake = -1;
    l->checksum = peer->checksum && peer->keys == NULL;
    l->cipher = peer->keys != NULL ? tcp_cipher_new(peer->keys) : NULL;
    l->greedy = true;
    l->buffer = aligned_alloc(TCP_ALIGN, TCP_BUFFER);
    return l;
}

static ring_status tcp_open(const transport_peer *peer, transport_link **out)
{
    tcp_link *l = link_new(peer);
    if (l == NULL) {
        int fd = peer->fd;
        fd_close(&fd);
        return fail(RING_ERR_MEMORY, "no memory for the tcp link to rank %d", peer->peer);
    }
    ring_status status;
    if (l->buffer == NULL || (peer->keys != NULL && l->cipher == NULL))
        status = fail(RING_ERR_MEMORY, "no memory for the tcp link to rank %d", peer->peer);
    else
        status = socket_prepare(l->fd);
    if (status == RING_OK) {
        tcp_watch_open(l, peer->peer_timeout);
        status = tcp_wake_open(l);
    }
    if (status != RING_OK) {
        tcp_close(&l->head);
        return status;
    }
    *out = &l->head;
    return RING_OK;
}

static bool tcp_probe(const transport_ib *ib, char *why, size_t size)
{
    (void)ib;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        (void)text_format(why, size, "cannot create a TCP socket on this host: %m");
        return false;
    }
    fd_close(&fd);
    return true;
}

/* There are no references: the peer is another process, and bytes reach it only through the
 * kernel. */
static uint64_t tcp_ref(transport_link *link, const void *ptr, size_t bytes)
{
    (void)link, (void)ptr, (void)bytes;
    return 0;
}

static void *tcp_map(transport_link *link, uint64_t ref, size_t bytes)
{
    (void)link, (void)ref, (void)bytes;
    return NULL;
}

static size_t tcp_memory(const transport_link *link)
{
    const tcp_link *l = (const tcp_link *)link;
    const size_t backlog = l->backlog.bytes != NULL ? TCP_BACKLOG : 0;
    const size_t cipher = l->cipher != NULL ? tcp_cipher_memory() : 0;
    return sizeof *l + TCP_BUFFER + backlog + cipher;
}

const transport transport_tcp = {
    .name = "tcp",
    .about = "one TCP connection per pair of ranks and kind of traffic, between any hosts",
    .powers = TRANSPORT_SEALS,
    .probe = tcp_probe,
    .open = tcp_open,
    .close = tcp_close,
    .send = tcp_send,
    .reserve = tcp_reserve,
    .flushed = tcp_flushed,
    .release = tcp_release,
    .released = tcp_released,
    .progress = tcp_progress,
    .peek = tcp_peek,
    .pull = tcp_pull,
    .consume = tcp_consume,
    .news = tcp_news,
    .ref = tcp_ref,
    .map = tcp_map,
    .wake_fd = tcp_wake_fd,
    .arm = tcp_arm,
    .disarm = tcp_disarm,
    .memory = tcp_memory,
};
