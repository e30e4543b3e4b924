/* SPDX-License-Identifier: Apache-2.0
 *
 * launch_frames: events of ranks, and orders to them, as frames. The ringrun that the user started
 * (near side) exchanges frames with a ringrun on each other host (far side) through the standard
 * input and output of ssh. There a frame has a head of 12 bytes in the byte order of the hosts:
 * type, stream, rank and length; then that many bytes of data. The far side sends a mark before its
 * first frame, since a shell may print a greeting before the mark.
 */
#ifndef LAUNCH_FRAMES_H
#define LAUNCH_FRAMES_H

#include "outlet.h"

/** Sent by the far side before its first frame. */
#define FRAMES_MARK "\001ringrun\002"

enum frame_type {
    /* From the far side only: */
    FRAME_HELLO = 1, /* the first frame; rank: version of libring; data: address of the host  */
    FRAME_HUNGRY,    /* rank 0's standard input can take more                                 */
    /* Events of ranks: */
    FRAME_OUTPUT,  /* output of a rank; no data: the stream has ended                         */
    FRAME_ENDED,   /* data: rank_end; follows all output of the rank                          */
    FRAME_STOPPED, /* data: rank_end; the terminal stopped the rank by SIGTTIN or SIGTTOU     */
    /* To the far side only: */
    FRAME_JOB, /* data: job_pack() */
    /* Orders to ranks: */
    FRAME_INPUT,  /* standard input of rank 0; no data: its end                               */
    FRAME_SIGNAL, /* rank: number of a signal for all ranks                                   */
    FRAME_STOP,   /* end all ranks: after some time for reports SIGTERM, then SIGKILL         */
    FRAME_KILL,   /* kill all ranks at once                                                   */
    FRAME_MUTE,   /* close a stream of a rank that nobody reads: the rank gets SIGPIPE        */
    FRAME_TYPES
};

enum { FRAME_DATA_MAX = 65536, FRAME_JOB_MAX = 16 << 20 };

typedef struct frame {
    enum frame_type type;
    int stream, rank; /* stream: 1 or 2, like a descriptor */
    const char *data; /* in a received frame: valid until the next read */
    size_t bytes;
} frame;

/** How a rank ended. */
typedef struct rank_end {
    int rank, pid;
    int code;      /* exit code; 127 if the program was not found */
    int signal;    /* the signal that killed the rank; 0: none */
    char why[320]; /* the reason if the rank was not started or was lost; else "" */
} rank_end;

/** Appends a frame. */
void frames_put(bytes *out, const frame *f);
/** Appends a frame to an outlet, unless writing to the outlet has failed. */
void frames_send(outlet *out, const frame *f);
/** Calls @p take for all complete frames of @p in, and removes them. @return false if a frame is
 *  damaged. */
bool frames_each(bytes *in, void (*take)(void *context, const frame *f), void *context);

/** @return a frame FRAME_ENDED or FRAME_STOPPED, which points to @p end. */
frame frames_of_end(enum frame_type type, const rank_end *end);
/** Reads such a frame. @return false if it is damaged. */
bool frames_get_end(const frame *f, rank_end *end);

#endif
