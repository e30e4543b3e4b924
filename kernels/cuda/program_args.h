/* SPDX-License-Identifier: Apache-2.0
 *
 * program_args: what the kernel that runs programs (program.cu) is given, and the memory by which
 * ranks meet in it. C and C++.
 *
 * Lanes. A block runs one channel of the program of one rank, here called a lane: the slices of
 * that channel. Lanes of a rank share nothing, so its blocks never wait for each other.
 *
 * Links. Two ranks exchange frames for each lane and direction: the sender writes a frame to the
 * receiver's box, the receiver writes to the sender's receipt what it has taken. A word that the
 * other rank waits for is written last, by release at system scope. A message is one frame that
 * refers to it, or says that it was stored, or as many frames as it has segments, whose bytes lie
 * in the box. Numbers go on from call to call, and lie in memory of the device: a launch that is
 * replayed has the same arguments.
 *
 * The end. A lane waits at its end until peers have released all that it sent: from then on nobody
 * touches this rank's buffers, boxes and receipts before its next call.
 *
 * Apart. Between ranks of two processes boxes and receipts are mapped, buffers of calls are not:
 * all messages are carried, also those that others are not. A send then waits while the box has no
 * room. A slice sends a peer no more than DEVICE_APART_BYTES, so the box has room for a whole one,
 * and the rank that is furthest behind never waits for room.
 */
#ifndef RING_CUDA_PROGRAM_ARGS_H
#define RING_CUDA_PROGRAM_ARGS_H

#include "program_ops.h"

enum {
    DEVICE_FRAMES = 64,               /* a box has room for                              */
    DEVICE_CARRIED_BYTES = 128 << 10, /* of a box                                        */
    DEVICE_SEGMENT_BYTES = 16 << 10,  /* at most, of a frame                             */
    DEVICE_EAGER_BYTES = DEVICE_CARRIED_BYTES / 4, /* that a call may send a peer ahead   */
    DEVICE_APART_BYTES = DEVICE_CARRIED_BYTES / 2, /* that a slice may send a peer apart  */
    DEVICE_THREADS = 512,                          /* of a block                          */
    DEVICE_LAUNCH_RANKS = 16                       /* at most, of a launch                */
};

/** How the bytes of a frame come. */
enum { DEVICE_CARRIED, DEVICE_REFERRED, DEVICE_STORED };

typedef struct device_frame {
    uint64_t stamp;     /* its number on the link, from 1; written last                 */
    uint64_t call;      /* the call's number on the communicator                        */
    uint64_t signature; /* of the call                                                  */
    uint64_t at;        /* referred to: its address at the sender; carried: the offset in the box */
    uint64_t dst;       /* address of the sender's dst, 0: it has none                  */
    uint64_t bytes;     /* of the frame; stored: of the message                         */
    uint32_t way;       /* carried, referred to, stored                                 */
    uint32_t last;      /* of its message                                               */
    uint64_t unused;
} device_frame;

/** In memory of the receiver. */
typedef struct device_box {
    device_frame frames[DEVICE_FRAMES]; /* frame k in place k mod DEVICE_FRAMES */
    char carried[DEVICE_CARRIED_BYTES];
} device_box;

/** In memory of the sender. */
typedef struct device_receipt {
    uint64_t taken;    /* frames that the receiver has read                    */
    uint64_t released; /* messages of which it needs nothing at the sender     */
} device_receipt;

/** One end of a link, of one lane, with its counters. In memory of the device. */
typedef struct device_link {
    device_box *in, *out;            /* out: the peer's                                      */
    device_receipt *receipt, *given; /* receipt: written by the peer; given: the peer's      */
    uint32_t apart; /* the peer's addresses mean nothing here: all is carried           */
    uint32_t begun; /* the peer's first frame of the present call came                  */
    uint64_t dst;   /* the peer's dst in the present call, 0: unknown       */
    uint64_t frames_in, frames_out; /* taken, sent                                          */
    uint64_t messages_in, messages_out;
    uint64_t messages_before; /* sent before the present call                         */
    uint64_t carried;         /* bytes of the peer's box that were used so far        */
    uint64_t carried_before[DEVICE_FRAMES]; /* that of each frame: what was used before it  */
} device_link;

/** How a lane's call ended. In memory that the host reads. */
typedef struct device_verdict {
    uint64_t status;          /* ring_status                                */
    uint64_t peer;            /* the rank that it was about                 */
    uint64_t their_signature; /* RING_ERR_MISMATCH                          */
    uint64_t their_call;
} device_verdict;

/** The call of one rank. */
typedef struct device_call {
    const program_op *ops; /* [op_count] */
    const operand *operands;
    const program_peer *peers; /* [peer_count] */
    device_link *links;        /* [lanes][ranks] */
    uint64_t *numbers;         /* [lanes] calls that were run */
    device_verdict *verdicts;  /* [lanes] */
    const uint64_t *abort;     /* not 0: the host ends the call */
    uint64_t *stop;            /* not 0: another lane of the rank has failed; device memory */
    char *src, *dst, *scratch; /* scratch: [lanes][scratch_bytes] */
    uint64_t scratch_bytes;
    uint64_t signature;
    uint64_t slice, segment; /* elements; see program */
    uint64_t nanoseconds;    /* until it fails, from its start */
    int32_t op_count, peer_count, slices, ranks;
    int32_t op;
} device_call;

typedef struct program_args {
    device_call calls[DEVICE_LAUNCH_RANKS];
    uint32_t ranks, lanes; /* blocks: ranks * lanes, those of a rank in a row */
} program_args;

#endif
