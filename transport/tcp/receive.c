/* SPDX-License-Identifier: Apache-2.0
 * Reads frames from the kernel. A reader that uses payloads in place calls peek() and finds them in
 * the buffer, which one recv() fills with many frames. A reader that wants them elsewhere calls
 * pull(), which stores most bytes directly at their destination. The link expects the next payload
 * to be read in the same way as the latest one.
 *
 * Invariant: the offset of buffer[first] in the stream is equal to `first` modulo 64. */
#include "tcp.h"
#include "tcp_failure.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Bytes that pull() reads after its payload: enough for many small frames, and few to copy if they
 * are the start of a large one. */
enum { READ_AHEAD = 4096 };

enum { HEADER = sizeof(transport_frame) };

static size_t buffered(const tcp_link *l)
{
    return l->end - l->first;
}

static bool payload_is_here(const tcp_link *l)
{
    return !l->pulling && buffered(l) >= tcp_padded(transport_behind(&l->frame));
}

/* The status is not RING_ERR_PEER, because the peer is not the cause of the damage. */
static ring_status damaged(tcp_link *l, const char *what)
{
    const uint64_t number = l->head.frames_received;
    return tcp_break(l, fail(RING_ERR_SYSTEM,
                             "frame %" PRIu64
                             " from rank %d arrived damaged over tcp: %s; a network adapter, a "
                             "driver or a proxy on the path changes, drops or duplicates bytes",
                             number, l->head.peer, what));
}

static ssize_t read_stream(tcp_link *l, const struct iovec *parts, int count)
{
    return l->cipher != NULL ? tcp_cipher_receive(l->cipher, l->fd, parts, (size_t)count)
                             : readv(l->fd, parts, count);
}

/* Converts the result of read_stream() to a status. */
static ring_status received(tcp_link *l, ssize_t got)
{
    if (got > 0)
        return RING_OK;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return RING_IN_PROGRESS;
    const int peer = l->head.peer;
    if (got < 0 && errno == EBADMSG)
        return tcp_break(
            l, fail(RING_ERR_SYSTEM,
                    "data from rank %d arrived damaged over tcp: it cannot be decrypted with "
                    "the key of this connection; a network adapter, a driver or a proxy on the "
                    "path changes, drops or duplicates bytes, or a third party forges them",
                    peer));
    if (got < 0)
        return tcp_break(l, fail(RING_ERR_PEER, "receiving from rank %d over tcp: %m", peer));
    const bool amid = l->has_frame || buffered(l) > 0 || l->skip > 0 ||
                      (l->cipher != NULL && tcp_cipher_is_amid(l->cipher));
    return tcp_break(l, fail(RING_ERR_PEER, "rank %d closed the tcp connection%s", peer,
                             amid ? " in the middle of a frame" : ""));
}

/* Reads once into the buffer. If the next header or payload would not fit, first moves the buffer's
 * contents to its front. They keep their offset modulo 64, so that aligned bytes stay aligned. */
static ring_status fill(tcp_link *l)
{
    const size_t next = l->has_frame ? tcp_padded(transport_behind(&l->frame)) : l->skip + HEADER;
    const size_t need = min_size(next, TRANSPORT_SEGMENT);
    if (buffered(l) == 0 || l->first + need > TCP_BUFFER) {
        const size_t front = l->first % TCP_ALIGN, bytes = buffered(l);
        if (bytes > 0)
            memmove(l->buffer + front, l->buffer + l->first, bytes);
        l->first = front;
        l->end = front + bytes;
    }
    size_t room = TCP_BUFFER - l->end;
    if (!l->greedy)
        room = min_size(room, max_size(need, buffered(l)) - buffered(l) + READ_AHEAD);
    const struct iovec part = {l->buffer + l->end, room};
    const ssize_t got = read_stream(l, &part, 1);
    RING_TRY(received(l, got));
    l->end += (size_t)got;
    return RING_OK;
}

static ring_status check_payload(tcp_link *l, const void *payload)
{
    const size_t bytes = transport_behind(&l->frame);
    if (!l->checksum || bytes == 0 || tcp_payload_sum(payload, bytes) == l->payload_sum)
        return RING_OK;
    return damaged(l, "its payload's checksum is wrong");
}

/* Moves the next header from the buffer to l->frame. */
static ring_status take_header(tcp_link *l)
{
    const size_t padding = min_size(l->skip, buffered(l));
    l->first += padding;
    l->skip -= padding;
    if (buffered(l) < HEADER)
        return RING_IN_PROGRESS;
    memcpy(&l->frame, l->buffer + l->first, HEADER);
    if (l->frame.stamp != tcp_stamp(&l->frame, l->head.frames_received, l->checksum))
        return damaged(l, l->checksum ? "its header's checksum is wrong" : "it is out of order");
    if (!transport_is_sound(&l->frame, TCP_FLAGS))
        return damaged(l, "its header is invalid");
    if (l->checksum && transport_behind(&l->frame) > 0) {
        l->payload_sum = l->frame.ext.src_ref;
        l->frame.ext.src_ref = 0; /* the reader of the frame must not see the checksum */
    }
    l->first += HEADER;
    l->has_frame = true;
    return RING_OK;
}

ring_status tcp_peek(transport_link *link, const transport_frame **frame, const void **payload)
{
    tcp_link *l = (tcp_link *)link;
    RING_TRY(tcp_verdict(l));
    const bool header_is_new = !l->has_frame;
    if (header_is_new) {
        ring_status status = take_header(l);
        if (status == RING_IN_PROGRESS) {
            RING_TRY(fill(l));
            status = take_header(l);
        }
        RING_TRY(status);
    }
    /* A reader that usually pulls may call pull() first, before its payload is read into the
     * buffer. */
    if (!l->pulling && !payload_is_here(l) && (!header_is_new || l->greedy)) {
        const ring_status status = fill(l);
        if (status != RING_IN_PROGRESS)
            RING_TRY(status);
    }
    const bool is_here = payload_is_here(l);
    if (is_here && !l->shown)
        RING_TRY(check_payload(l, l->buffer + l->first));
    l->shown = is_here;
    *frame = &l->frame;
    if (l->frame.flags == 0)
        *payload = l->frame.data;
    else
        *payload = is_here && transport_behind(&l->frame) > 0 ? l->buffer + l->first : NULL;
    return RING_OK;
}

/* Called when the buffer is empty. Reads the rest of the payload into @p dst, and up to READ_AHEAD
 * bytes of the next frames into the buffer. */
static ring_status pull_straight(tcp_link *l, unsigned char *dst)
{
    const size_t rest = transport_behind(&l->frame) - l->pulled;
    const size_t behind = transport_behind(&l->frame) % TCP_ALIGN;
    const struct iovec parts[] = {{dst + l->pulled, rest}, {l->buffer + behind, READ_AHEAD}};
    const ssize_t got = read_stream(l, parts, 2);
    RING_TRY(received(l, got));
    const size_t brought = min_size((size_t)got, rest);
    l->pulled += brought;
    l->first = l->pulled % TCP_ALIGN;
    l->end = l->first + (size_t)got - brought;
    return l->pulled == transport_behind(&l->frame) ? RING_OK : RING_IN_PROGRESS;
}

ring_status tcp_pull(transport_link *link, void *dst)
{
    tcp_link *l = (tcp_link *)link;
    RING_TRY(tcp_verdict(l));
    if (!l->has_frame)
        return RING_IN_PROGRESS;
    if (l->frame.flags == 0) {
        memcpy(dst, l->frame.data, l->frame.length);
        return RING_OK;
    }
    l->pulling = true;
    const size_t bytes = min_size(transport_behind(&l->frame) - l->pulled, buffered(l));
    if (bytes > 0)
        memcpy((unsigned char *)dst + l->pulled, l->buffer + l->first, bytes);
    l->first += bytes;
    l->pulled += bytes;
    if (l->pulled < transport_behind(&l->frame))
        RING_TRY(pull_straight(l, dst));
    return check_payload(l, dst);
}

void tcp_consume(transport_link *link)
{
    tcp_link *l = (tcp_link *)link;
    if (!l->has_frame)
        return;
    const size_t behind = transport_behind(&l->frame);
    if (behind > 0)
        l->greedy = !l->pulling;
    l->skip = tcp_padded(behind) - l->pulled;
    l->pulled = 0;
    l->has_frame = l->shown = l->pulling = false;
    l->head.frames_received++;
    l->head.bytes_received += transport_carried(&l->frame);
}

bool tcp_has_news(const tcp_link *l)
{
    if (l->cipher != NULL && !tcp_is_served(l) && tcp_cipher_holds(l->cipher))
        return true;
    if (!l->has_frame)
        return buffered(l) >= l->skip + HEADER;
    return !l->shown && payload_is_here(l);
}

bool tcp_is_served(const tcp_link *l)
{
    return l->has_frame && (l->shown || l->pulled == transport_behind(&l->frame));
}

/* A socket has no word in memory that announces frames. */
const _Atomic uint32_t *tcp_news(const transport_link *link, uint32_t *value)
{
    (void)link, (void)value;
    return NULL;
}
