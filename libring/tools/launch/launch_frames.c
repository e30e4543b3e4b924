/* SPDX-License-Identifier: Apache-2.0
 * Converts frames to bytes and back, and checks received frames. */
#include "launch_frames.h"

#include <string.h>

typedef struct frame_head {
    uint8_t type, stream, unused[2];
    uint32_t rank, bytes;
} frame_head;

void frames_put(bytes *out, const frame *f)
{
    const frame_head head = {.type = (uint8_t)f->type,
                             .stream = (uint8_t)f->stream,
                             .rank = (uint32_t)f->rank,
                             .bytes = (uint32_t)f->bytes};
    bytes_add(out, &head, sizeof head);
    bytes_add(out, f->data, f->bytes);
}

void frames_send(outlet *out, const frame *f)
{
    if (out->error == 0)
        frames_put(&out->waiting, f);
}

/* Reads the first frame of `in` without removing it. @return 1: *f is the frame; 0: it is
 * incomplete; -1: the bytes are not a frame. */
static int peek(const bytes *in, frame *f)
{
    frame_head head;
    if (bytes_count(in) < sizeof head)
        return 0;
    memcpy(&head, bytes_head(in), sizeof head);
    if (head.type < FRAME_HELLO || head.type >= FRAME_TYPES || head.rank > INT32_MAX ||
        head.bytes > (head.type == FRAME_JOB ? FRAME_JOB_MAX : FRAME_DATA_MAX))
        return -1;
    *f = (frame){(enum frame_type)head.type, head.stream, (int)head.rank,
                 bytes_head(in) + sizeof head, head.bytes};
    return bytes_count(in) - sizeof head >= head.bytes;
}

bool frames_each(bytes *in, void (*take)(void *context, const frame *f), void *context)
{
    frame f;
    int there;
    while ((there = peek(in, &f)) > 0) {
        take(context, &f);
        bytes_drop(in, sizeof(frame_head) + f.bytes);
    }
    return there == 0;
}

frame frames_of_end(enum frame_type type, const rank_end *end)
{
    return (frame){type, 0, end->rank, (const char *)end, sizeof *end};
}

bool frames_get_end(const frame *f, rank_end *end)
{
    if (f->bytes != sizeof *end)
        return false;
    memcpy(end, f->data, sizeof *end);
    end->rank = f->rank;
    end->code &= 255;
    end->signal &= 127;
    end->why[sizeof end->why - 1] = '\0';
    return true;
}
