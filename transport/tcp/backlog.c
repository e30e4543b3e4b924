/* SPDX-License-Identifier: Apache-2.0
 * Queues the frames that the kernel has not accepted yet, one after the other in a buffer. The
 * buffer wraps around when the next frame does not fit before its end. While the kernel accepts all
 * frames, the buffer is not used. */
#include "tcp.h"

#include <stdlib.h>

enum { HEADER = sizeof(transport_frame), NO_PLACE = TCP_BACKLOG };

static const unsigned char zeros[TCP_ALIGN];

ring_status tcp_backlog_open(tcp_backlog *b)
{
    if (b->bytes == NULL)
        b->bytes = aligned_alloc(TCP_ALIGN, TCP_BACKLOG);
    if (b->bytes == NULL)
        return fail(RING_ERR_MEMORY, "no memory to queue frames for a tcp connection");
    return RING_OK;
}

/* ---- Room -------------------------------------------------------------------------- */

size_t tcp_backlog_place(const tcp_backlog *b, size_t bytes)
{
    if (b->frames == 0)
        return 0;
    const size_t top = b->wrapped ? b->first : TCP_BACKLOG;
    if (bytes <= top - b->end)
        return b->end;
    return !b->wrapped && bytes <= b->first ? 0 : NO_PLACE;
}

bool tcp_backlog_fits(const tcp_backlog *b, const tcp_need *need)
{
    return tcp_backlog_place(b, need->bytes) != NO_PLACE &&
           !(need->loan && b->lent - b->returned == TCP_LOANS);
}

void tcp_backlog_add(tcp_backlog *b, size_t at, size_t bytes)
{
    if (b->frames++ == 0) {
        b->first = at;
        b->wrapped = false;
    } else if (at < b->end) {
        b->wrap = b->end;
        b->wrapped = true;
    }
    b->end = at + bytes;
}

void tcp_backlog_lend(tcp_backlog *b, uint64_t frame, const void *payload)
{
    b->loans[b->lent++ % TCP_LOANS] = (tcp_loan){.frame = frame, .payload = payload};
}

/* ---- Frames ------------------------------------------------------------------------ */

/** An iterator over the frames of the backlog, from the oldest one on. */
typedef struct walk {
    const tcp_backlog *b;
    uint64_t frame; /* number of the current frame                       */
    uint64_t loan;  /* number of the first loan of this or a later frame */
    size_t at;      /* offset of the current frame in b->bytes           */
} walk;

static const transport_frame *header(const walk *w)
{
    return (const transport_frame *)(const void *)(w->b->bytes + w->at);
}

/* @return the current frame's payload in the sender's memory; NULL if it is in the buffer. */
static const unsigned char *lent_payload(const walk *w)
{
    const tcp_loan *loan = &w->b->loans[w->loan % TCP_LOANS];
    return w->loan < w->b->lent && loan->frame == w->frame ? loan->payload : NULL;
}

/* @return the bytes of the buffer that the current frame uses. */
static size_t bytes_inside(const walk *w)
{
    return lent_payload(w) != NULL ? HEADER : HEADER + tcp_padded(transport_behind(header(w)));
}

static void walk_on(walk *w)
{
    w->at += bytes_inside(w);
    if (w->b->wrapped && w->at == w->b->wrap)
        w->at = 0;
    w->loan += lent_payload(w) != NULL;
    w->frame++;
}

/** The parts that are collected for one sendmsg(). */
typedef struct gather {
    struct iovec *parts;
    size_t count;
    size_t skip; /* how many of the next bytes the kernel already has; they are left out */
} gather;

static void gather_add(gather *g, const unsigned char *data, size_t bytes)
{
    const size_t skipped = min_size(g->skip, bytes);
    struct iovec *last = g->count > 0 ? &g->parts[g->count - 1] : NULL;
    g->skip -= skipped;
    data += skipped;
    bytes -= skipped;
    if (last != NULL && (unsigned char *)last->iov_base + last->iov_len == data)
        last->iov_len += bytes;
    else if (bytes > 0)
        g->parts[g->count++] = (struct iovec){.iov_base = (void *)(uintptr_t)data,
                                              .iov_len = bytes};
}

size_t tcp_backlog_gather(const tcp_backlog *b, uint64_t frame, size_t skip,
                          struct iovec parts[TCP_PARTS])
{
    enum { MOST_FRAMES = 256 }; /* bounds the work, which is wasted if the kernel accepts nothing */
    gather g = {.parts = parts, .skip = skip};
    walk w = {.b = b, .frame = frame, .loan = b->returned, .at = b->first};
    const uint64_t end = frame + (b->frames < MOST_FRAMES ? b->frames : MOST_FRAMES);
    for (; w.frame < end; walk_on(&w)) {
        const unsigned char *lent = lent_payload(&w);
        const size_t bytes = transport_behind(header(&w));
        gather_add(&g, b->bytes + w.at, bytes_inside(&w));
        if (lent != NULL) {
            gather_add(&g, lent, bytes);
            gather_add(&g, zeros, tcp_padded(bytes) - bytes);
        }
    }
    return g.count;
}

size_t tcp_backlog_drop(tcp_backlog *b, uint64_t frame, size_t handed)
{
    walk w = {.b = b, .frame = frame, .loan = b->returned, .at = b->first};
    const size_t whole = HEADER + tcp_padded(transport_behind(header(&w)));
    if (handed < whole)
        return 0;
    walk_on(&w);
    b->wrapped = b->wrapped && w.at > b->first;
    b->first = w.at;
    b->returned = w.loan;
    b->frames--;
    return whole;
}
