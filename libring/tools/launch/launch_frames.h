/* SPDX-License-Identifier: Apache-2.0
 *
 * launch_frames: events of ranks, and orders to them, in the same form whether the ranks run here
 * or on another host. Between two ringruns, over ssh's standard input and output, a frame is a
 * type, a stream, a rank, a length (12 bytes in the byte order of both hosts) and that many bytes.
 * The far side begins with a mark, because a shell may print a greeting before it.
 */
#ifndef LAUNCH_FRAMES_H
#define LAUNCH_FRAMES_H

#include "outlet.h"

#define FRAMES_MARK "\001ringrun\002"

enum frame_type {
    /* from the far side */
    FRAME_HELLO = 1, /* rank = version; data: its address */
    FRAME_HUNGRY,    /* rank 0's input can take more      */
    /* events */
    FRAME_OUTPUT,  /* of a rank; no data: its end                                         */
    FRAME_ENDED,   /* data: rank_end; all output of the rank has been given               */
    FRAME_STOPPED, /* data: rank_end; the terminal stopped the rank by SIGTTIN or SIGTTOU */
    /* to the far side */
    FRAME_JOB, /* data: job_pack() */
    /* orders */
    FRAME_INPUT,  /* for rank 0; no data: its end                                               */
    FRAME_SIGNAL, /* rank = signal number, to all ranks                                         */
    FRAME_STOP,   /* begins to end the ranks: time to report, SIGTERM, SIGKILL                  */
    FRAME_KILL,   /* ends them now                                                              */
    FRAME_MUTE,   /* closes a stream of a rank, whose reader has left: the rank gets SIGPIPE    */
    FRAME_TYPES
};

enum { FRAME_DATA_MAX = 65536, FRAME_JOB_MAX = 16 << 20 };

typedef struct frame {
    enum frame_type type;
    int stream, rank; /* stream: 1 or 2 */
    const char *data; /* of a frame that was read: valid until the next read */
    size_t bytes;
} frame;

/** The end of a rank. */
typedef struct rank_end {
    int rank, pid;
    int code;      /* exit code; 127 if it never started */
    int signal;    /* that killed it, 0: none */
    char why[320]; /* not "": it did not end by itself, for this reason */
} rank_end;

void frames_put(bytes *out, const frame *f);
/** The same for an outlet, unless writing to it has failed. */
void frames_send(outlet *out, const frame *f);
/** Gives all whole frames of @p in to @p take. @return false if there is one that is damaged. */
bool frames_each(bytes *in, void (*take)(void *context, const frame *f), void *context);

/** A frame of FRAME_ENDED or FRAME_STOPPED. Borrows @p end. */
frame frames_of_end(enum frame_type type, const rank_end *end);
/** @return false if the frame is damaged. */
bool frames_get_end(const frame *f, rank_end *end);

#endif
