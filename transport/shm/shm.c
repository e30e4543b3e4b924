/* SPDX-License-Identifier: Apache-2.0
 *
 * shm: connects processes of one host. Frames travel through two rings of lines in memory files,
 * one created by each end; peers map memory from ring_mem_alloc() and use it in place.
 *
 * Each end sends a greeting with the descriptors of its ring and of its heap. The peer maps both
 * and announces whether it could map the heap. If an end has no heap, or no address space for the
 * peer's heap, all bytes travel through lines. In the steady state the link makes no system calls
 * and no allocations.
 */
#include "heap.h"
#include "lines_link.h"
#include "pass.h"
#include "region.h"
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

typedef struct shm_link {
    lines_link lines; /* first: a transport_link is a shm_link */
    lines_ring *out, *in;
    int file;              /* descriptor of `out`; -1: closed, no longer needed to commit pages */
    void *peer_heap;       /* NULL: not mapped               */
    size_t peer_span;      /* bytes of peer_heap             */
    uint32_t peer_lines;   /* number of lines in the peer's ring */
    lines_greeting theirs; /* the peer's greeting, after it has arrived */
} shm_link;

/* Indices of the descriptors of a greeting, whose `offer` is the heap's size in bytes. An end
 * without a heap passes its ring twice and offers 0. */
enum { PASSED_RING, PASSED_HEAP };

/* ---- Opening and closing --------------------------------------------------------- */

static bool shm_probe(const transport_ib *ib, char *why, size_t size)
{
    lines_ring *ring;
    uint32_t lines;
    int fd;
    (void)ib;
    if (shm_region_create(&fd, &ring, &lines) != RING_OK) {
        snprintf(why, size, "%s", fail_text());
        return false;
    }
    shm_region_unmap(ring);
    fd_close(&fd);
    return true;
}

static void shm_link_close(transport_link *head)
{
    shm_link *l = (shm_link *)head;
    lines_link_close(&l->lines);
    fd_close(&l->file);
    lines_produce_no_more(&l->lines.out);
    shm_region_unmap(l->in);
    shm_region_unmap(l->out);
    if (l->peer_heap != NULL)
        heap_unmap_peer(l->peer_heap);
    free(l);
}

/* If there is no address space for the peer's heap, the link still works: it copies all bytes. */
static ring_status map_heap(shm_link *l, int fd, uint64_t span)
{
    if (span == 0)
        return RING_OK;
    RING_TRY(shm_region_check_seals(fd));
    const ring_status status = heap_map_peer(fd, span, &l->peer_heap);
    if (status == RING_OK)
        l->peer_span = span;
    if (status != RING_ERR_MEMORY)
        return status;
    log_debug("the shm link copies all bytes: %s", fail_text());
    return RING_OK;
}

static ring_status receive_greeting(shm_link *l)
{
    int fds[SHM_PASS_FDS];
    RING_TRY(shm_pass_receive(l->lines.fd, &l->theirs, sizeof l->theirs, fds));
    ring_status status = lines_link_check(&l->theirs);
    if (status == RING_OK)
        status = shm_region_map(fds[PASSED_RING], &l->in, &l->peer_lines);
    if (status == RING_OK)
        status = map_heap(l, fds[PASSED_HEAP], l->theirs.offer);
    for (int i = 0; i < SHM_PASS_FDS; i++)
        fd_close(&fds[i]);
    return status;
}

static ring_status greet(shm_link *l)
{
    const lines_greeting mine = lines_link_greeting(&l->lines, heap_span());
    const int heap = heap_fd();
    const int passed[SHM_PASS_FDS] = {
        [PASSED_RING] = l->file, [PASSED_HEAP] = heap >= 0 ? heap : l->file};
    const ring_status status = shm_pass_send(l->lines.fd, &mine, sizeof mine, passed);
    l->lines.greeted = status == RING_OK;
    if (l->lines.greeted && lines_leave_file(&l->lines.out))
        fd_close(&l->file);
    return status;
}

/* The kernel limits the descriptors that a user has in flight between processes. If this end cannot
 * send its greeting for that reason, it still receives the peer's, which frees descriptors. */
static ring_status look_for_greeting(lines_link *lines)
{
    shm_link *l = (shm_link *)lines;
    const ring_status sent = l->lines.greeted ? RING_OK : greet(l);
    const ring_status received = l->in != NULL ? RING_OK : receive_greeting(l);
    RING_TRY(received);
    RING_TRY(sent);
    atomic_store(&l->out->maps, l->peer_heap != NULL ? LINES_MAPPED : LINES_NOT_MAPPED);
    RING_TRY(lines_link_accept(lines, &l->theirs, l->in, l->peer_heap != NULL ? FRAME_REF : 0));
    l->lines.in.lines = l->peer_lines;
    return RING_OK;
}

/* Creates this end's ring, and then passes it to the peer in the greeting. */
static ring_status build(shm_link *l)
{
    if (heap_open() != RING_OK)
        log_debug("the shm link copies all bytes: %s", fail_text());
    uint32_t lines;
    RING_TRY(shm_region_create(&l->file, &l->out, &lines));
    RING_TRY(lines_produce(&l->lines.out, l->out, l->file));
    lines_use(&l->lines.out, lines);
    const ring_status status = greet(l);
    return status == RING_IN_PROGRESS ? RING_OK : status;
}

static ring_status shm_link_open(const transport_peer *peer, transport_link **out)
{
    shm_link *l = calloc(1, sizeof *l);
    int fd = peer->fd;
    if (l == NULL) {
        fd_close(&fd);
        return fail(RING_ERR_MEMORY, "no memory for the shm link to rank %d", peer->peer);
    }
    lines_link_init(&l->lines, &transport_shm, peer, look_for_greeting);
    l->file = -1;
    const ring_status status = build(l);
    if (status != RING_OK) {
        shm_link_close(&l->lines.head);
        return fail(status, "opening the shm link to rank %d: %s", peer->peer, fail_text());
    }
    *out = &l->lines.head;
    return RING_OK;
}

/* ---- Memory -------------------------------------------------------------------- */

static uint64_t shm_ref(transport_link *head, const void *ptr, size_t bytes)
{
    lines_link *l = (lines_link *)head;
    if (l->state == RING_OK && !l->answered)
        lines_link_check_mapped(l);
    return l->flags & FRAME_STORED ? heap_ref(ptr, bytes) : 0;
}

static void *shm_map(transport_link *head, uint64_t ref, size_t bytes)
{
    const shm_link *l = (const shm_link *)head;
    const uint64_t span = l->peer_span;
    if (l->peer_heap == NULL || ref == 0 || bytes > span || ref - 1 > span - bytes)
        return NULL;
    return (char *)l->peer_heap + (ref - 1);
}

static size_t shm_memory(const transport_link *head)
{
    return sizeof(shm_link) + ((const shm_link *)head)->lines.out.committed;
}

const transport transport_shm = {
    .name = "shm",
    .about = "between processes of one host",
    .powers = TRANSPORT_CAN_MAP | TRANSPORT_COPIES | TRANSPORT_SAME_HOST,
    .probe = shm_probe,
    .open = shm_link_open,
    .close = shm_link_close,
    .send = lines_link_send,
    .reserve = lines_link_reserve,
    .flushed = lines_link_flushed,
    .release = lines_link_release,
    .released = lines_link_released,
    .progress = lines_link_progress,
    .peek = lines_link_peek,
    .pull = lines_link_pull,
    .consume = lines_link_consume,
    .news = lines_link_news,
    .ref = shm_ref,
    .map = shm_map,
    .wake_fd = lines_link_wake_fd,
    .arm = lines_link_arm,
    .disarm = lines_link_disarm,
    .memory = shm_memory,
};
