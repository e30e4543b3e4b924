/* SPDX-License-Identifier: Apache-2.0
 * Frames as bytes, and back. */
#include "launch_frames.h"

#include <string.h>

enum { HEAD_BYTES = 12, END_BYTES = 12 };

static void store32(unsigned char *out, uint32_t number)
{
    for (int i = 0; i < 4; i++)
        out[i] = (unsigned char)(number >> (8 * i));
}

static uint32_t load32(const char *in)
{
    uint32_t number = 0;
    for (int i = 0; i < 4; i++)
        number |= (uint32_t)(unsigned char)in[i] << (8 * i);
    return number;
}

void frames_put(bytes *out, enum frame_type type, int stream, int rank, const char *data,
                size_t count)
{
    unsigned char head[HEAD_BYTES] = {(unsigned char)type, (unsigned char)stream};
    store32(head + 4, (uint32_t)rank);
    store32(head + 8, (uint32_t)count);
    bytes_add(out, head, sizeof head);
    bytes_add(out, data, count);
}

int frames_peek(const bytes *in, frame *f)
{
    const char *head = bytes_head(in);
    if (bytes_count(in) < HEAD_BYTES)
        return 0;
    const uint32_t type = (unsigned char)head[0], rank = load32(head + 4), size = load32(head + 8);
    if (type < FRAME_HELLO || type >= FRAME_TYPES || rank > INT32_MAX ||
        size > (type == FRAME_JOB ? JOB_WIRE_MAX : FRAME_DATA_MAX))
        return -1;
    if (bytes_count(in) - HEAD_BYTES < size)
        return 0;
    *f = (frame){(enum frame_type)type, (unsigned char)head[1], (int)rank, head + HEAD_BYTES, size};
    return 1;
}

void frames_done(bytes *in, const frame *f)
{
    bytes_drop(in, HEAD_BYTES + f->bytes);
}

void frames_put_end(bytes *out, const rank_end *end)
{
    unsigned char data[END_BYTES + sizeof end->why];
    const size_t length = strlen(end->why);
    store32(data, (uint32_t)end->code);
    store32(data + 4, (uint32_t)end->signal);
    store32(data + 8, (uint32_t)end->pid);
    memcpy(data + END_BYTES, end->why, length);
    frames_put(out, FRAME_ENDED, 0, end->rank, (const char *)data, END_BYTES + length);
}

bool frames_get_end(const frame *f, rank_end *end)
{
    *end = (rank_end){.rank = f->rank};
    if (f->bytes < END_BYTES || f->bytes - END_BYTES >= sizeof end->why)
        return false;
    end->code = (int)(load32(f->data) & 255);
    end->signal = (int)(load32(f->data + 4) & 127);
    end->pid = (int)load32(f->data + 8);
    memcpy(end->why, f->data + END_BYTES, f->bytes - END_BYTES);
    return true;
}
