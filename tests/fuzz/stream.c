/* SPDX-License-Identifier: Apache-2.0
 * Bytes on the socket of a tcp link, and what frames say of their calls. */
#include "give.h"

#include "signature.h"
#include "tcp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { STREAM_MOST = 8192 };

/* ---- Streams -------------------------------------------------------------------- */

static transport_frame short_frame(uint64_t message, uint8_t length)
{
    transport_frame f = {.length = length, .call = 3, .signature = 77, .message = message};
    memset(f.data, 5, length);
    return f;
}

static transport_frame long_frame(uint64_t message, size_t bytes)
{
    return (transport_frame){.flags = FRAME_LONG,
                             .call = 3,
                             .message = message,
                             .ext = {.bytes = bytes, .count = bytes / 4, .segment = 1}};
}

static size_t put_frame(unsigned char *at, transport_frame frame, uint64_t number, bool checksum)
{
    const size_t behind = transport_behind(&frame);
    memset(at, 0, sizeof frame + tcp_padded(behind));
    memset(at + sizeof frame, (int)number + 1, behind);
    tcp_seal(&frame, number, at + sizeof frame, checksum);
    memcpy(at, &frame, sizeof frame);
    return sizeof frame + tcp_padded(behind);
}

static void seed_stream(fuzz_seeds *to, bool checksum)
{
    unsigned char stream[STREAM_MOST] = {0};
    size_t end = put_frame(stream, short_frame(0, 40), 0, checksum);
    fuzz_add(to, stream, end);
    end += put_frame(stream + end, long_frame(1, 100), 1, checksum);
    end += put_frame(stream + end, short_frame(2, 0), 2, checksum);
    fuzz_add(to, stream, end);
    end += put_frame(stream + end, long_frame(3, 4096), 3, checksum);
    end += put_frame(stream + end, long_frame(4, 0), 4, checksum);
    end += put_frame(stream + end, short_frame(5, 8), 5, checksum);
    fuzz_add(to, stream, end);
}

/* ---- Reading -------------------------------------------------------------------- */

static volatile unsigned char touched;

static void touch(const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        touched ^= ((const unsigned char *)bytes)[i];
}

static ring_status pull(transport_link *l, const transport_frame *frame)
{
    const size_t bytes = transport_carried(frame);
    void *to = malloc(bytes); /* its end is where the sanitizer sees it */
    must(to != NULL);
    const ring_status status = l->transport->pull(l, to);
    if (status == RING_OK)
        touch(to, bytes);
    free(to);
    return status;
}

/* Every other frame is pulled. @return RING_IN_PROGRESS: its payload is not here. */
static ring_status read_frame(transport_link *l)
{
    const transport_frame *frame;
    const void *payload;
    RING_TRY(l->transport->peek(l, &frame, &payload));
    must(transport_is_sound(frame, TCP_FLAGS) && (uintptr_t)payload % 8 == 0);
    if (l->frames_received % 2 == 1)
        RING_TRY(pull(l, frame));
    else if (payload != NULL)
        touch(payload, transport_carried(frame));
    l->transport->consume(l);
    return RING_OK;
}

/* The stream has an end, so there is an error in the end. */
static ring_status read_stream(transport_link *l)
{
    ring_status status;
    int waits = 0;
    do {
        status = read_frame(l);
        must(status != RING_IN_PROGRESS || ++waits < 100);
    } while (status == RING_OK || status == RING_IN_PROGRESS);
    must(status == RING_ERR_PEER || status == RING_ERR_SYSTEM);
    fuzz_check_refusal(status, fail_text());
    return l->frames_received > 0 ? RING_OK : status;
}

static ring_status parse_stream(const unsigned char *bytes, size_t size, bool checksum)
{
    int ends[2];
    transport_link *l;
    give_pair(ends);
    must(give_sent(ends[1], bytes, size) && shutdown(ends[1], SHUT_WR) == 0);
    const transport_peer peer = {.peer = 1, .fd = ends[0], .checksum = checksum};
    must(transport_tcp.open(&peer, &l) == RING_OK);
    const ring_status status = read_stream(l);
    transport_tcp.close(l);
    fd_close(&ends[1]);
    return status;
}

static void seed_tcp_frames(fuzz_seeds *to)
{
    seed_stream(to, false);
}

static ring_status parse_tcp_frames(const unsigned char *bytes, size_t size)
{
    return parse_stream(bytes, size, false);
}

const fuzz_target fuzz_tcp_frames = {.name = "tcp_frames",
                                     .reads = "frames of a tcp link, RING_CHECKSUM=0",
                                     .most = STREAM_MOST,
                                     .seeds = seed_tcp_frames,
                                     .parse = parse_tcp_frames,
                                     .reason = fail_text};

static void seed_tcp_checksums(fuzz_seeds *to)
{
    seed_stream(to, true);
}

static ring_status parse_tcp_checksums(const unsigned char *bytes, size_t size)
{
    return parse_stream(bytes, size, true);
}

const fuzz_target fuzz_tcp_checksums = {.name = "tcp_checksums",
                                        .reads = "frames of a tcp link with checksums",
                                        .most = STREAM_MOST,
                                        .seeds = seed_tcp_checksums,
                                        .parse = parse_tcp_checksums,
                                        .reason = fail_text};

/* ---- Calls ---------------------------------------------------------------------- */

static void seed_signature(fuzz_seeds *to)
{
    const call_signature call = {
        PLAN_ALL_REDUCE, RING_FLOAT32, RING_SUM, 0, 1000, NULL, 0, false, 0, false};
    const call_way way = {.algorithm = 2, .chunks = 8};
    transport_frame frame = long_frame(9, 4000);
    frame.signature = signature_pack(&call, &way);
    fuzz_add(to, &frame, sizeof frame);
    frame.flags = 0;
    fuzz_add(to, &frame, sizeof frame);
}

static ring_status parse_signature(const unsigned char *bytes, size_t size)
{
    transport_frame frame;
    if (size < sizeof frame)
        return RING_IN_PROGRESS;
    memcpy(&frame, bytes, sizeof frame);
    const call_signature call = signature_of_frame(&frame);
    for (size_t room = 1; room <= 160; room += 53) {
        char *text = malloc(room);
        must(text != NULL);
        signature_describe(&call, frame.message, text, room);
        must(memchr(text, '\0', room) != NULL && fuzz_is_printable(text));
        free(text);
    }
    return RING_OK;
}

const fuzz_target fuzz_signature = {.name = "signature",
                                    .reads = "calls that peers' frames tell of",
                                    .most = sizeof(transport_frame),
                                    .seeds = seed_signature,
                                    .parse = parse_signature};
