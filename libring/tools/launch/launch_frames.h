/* SPDX-License-Identifier: Apache-2.0
 *
 * launch_frames: messages between two ringruns over ssh's standard input and output. A frame is a
 * type, a stream, a rank, a length (12 bytes, least first) and that many bytes. The far side begins
 * with a mark, because a shell may print a greeting before it.
 */
#ifndef LAUNCH_FRAMES_H
#define LAUNCH_FRAMES_H

#include "events.h"
#include "job.h"

#define FRAMES_MARK "\001ringrun\002"

enum frame_type {
    /* from the far side */
    FRAME_HELLO = 1, /* rank = version; data: its address      */
    FRAME_OUTPUT,    /* of a rank; no data: its end            */
    FRAME_ENDED,     /* data: code, signal, pid, text          */
    FRAME_HUNGRY,    /* rank 0's input can take more           */
    /* to the far side */
    FRAME_JOB,    /* data: job_pack()                       */
    FRAME_INPUT,  /* for rank 0; no data: its end           */
    FRAME_SIGNAL, /* rank = signal number                   */
    FRAME_STOP,   /* host_ranks_ops.stop                    */
    FRAME_KILL,   /* host_ranks_ops.kill                    */
    FRAME_MUTE,   /* local_ranks_mute(): rank, stream       */
    FRAME_TYPES
};

enum { FRAME_DATA_MAX = 65536 }; /* except FRAME_JOB: JOB_WIRE_MAX */

typedef struct frame {
    enum frame_type type;
    int stream, rank;
    const char *data; /* valid until frames_done() */
    size_t bytes;
} frame;

void frames_put(bytes *out, enum frame_type type, int stream, int rank, const char *data,
                size_t count);
/** @return 1: *f is the oldest frame of @p in; 0: incomplete; -1: not a frame. */
int frames_peek(const bytes *in, frame *f);
void frames_done(bytes *in, const frame *f);

void frames_put_end(bytes *out, const rank_end *end);
/** @return false if the frame is damaged. */
bool frames_get_end(const frame *f, rank_end *end);

#endif
