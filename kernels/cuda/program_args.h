/* SPDX-License-Identifier: Apache-2.0
 *
 * program_args: defines the arguments of the kernel that runs programs (program.cu), and the memory
 * through which the ranks of a call communicate. C and C++ include this.
 *
 * Lanes: a block runs the slices of one channel of one rank's program; this is called a lane. The
 * lanes of a rank share nothing, so its blocks never wait for each other.
 *
 * Links: two ranks exchange frames for each lane and direction. The sender writes a frame to the
 * receiver's box, and the receiver writes to the sender's receipt how much it has taken. A word
 * that the other rank polls is written last, with release semantics at system scope. A message is
 * either one frame that refers to it, or one frame that announces that it was stored, or a frame
 * for each of its segments, whose bytes are in the box. Numbers continue from call to call, and are
 * kept in the device's memory, because a launch that is replayed has the same arguments.
 *
 * Words: a message of few elements is sent without a frame, as words that have 4 bytes of data and
 * a flag, to a slot of the receiver's box (program_words.h). Both ends decide by the message's
 * number in the slice and its length whether it is sent so. A slice sends a peer at most
 * DEVICE_SLOTS messages by words, so the rank in the earliest slice always finds a free slot: its
 * peer has read the messages of all slices before.
 *
 * End: at its end a lane waits until its peers have released the messages that were not carried.
 * From then on no other rank accesses this rank's buffers before its next call: a peer stores to
 * its dst only after a frame of that call has told the peer its address. A lane does not wait for
 * carried messages. They are in boxes, whose room is counted from call to call, so a rank may be
 * some calls ahead of a peer, and waits in the later call when a box is full. That wait ends: the
 * peer's earlier call needs nothing from the rank except what is in the box, and when both are in
 * the same call, the box holds messages of that call alone. Peers may read boxes and write receipts
 * until they have departed from the seat.
 *
 * Ranks of two processes ("apart"): boxes and receipts are mapped, but the buffers of calls are
 * not, so every message is carried in the box. A send waits while the box has no room. A slice
 * sends a peer at most half of a box's window, so the box has room for a whole slice, and the
 * slowest rank never waits for room.
 *
 * Ranks of two hosts ("far"): each rank has a box of its own for what it sends to the other one, in
 * memory of the host, and the host carries frames and receipts between the boxes of the two ranks.
 */
#ifndef RING_CUDA_PROGRAM_ARGS_H
#define RING_CUDA_PROGRAM_ARGS_H

#include "device_frames.h"
#include "program_ops.h"

enum {
    DEVICE_SLOTS = 2,                   /* slots of a box for messages by words         */
    DEVICE_HEADER_WORDS = 4,            /* the call's number and its signature          */
    DEVICE_REFILL = DEVICE_SLOTS << 20, /* messages after which slots are stored as a whole */
    DEVICE_FRAMES_MOST = 64,            /* most frames for which a box has room         */
    DEVICE_WINDOW_MOST = 128 << 10,     /* most carried bytes for which a box has room  */
    DEVICE_FAR_WINDOW_MOST = 1 << 20,   /* the same, if ranks are on several hosts      */
    DEVICE_PROGRAM_BYTES = 8 << 10,     /* most bytes of a program in shared memory     */
    DEVICE_THREADS = 512,               /* threads of a block                           */
    DEVICE_LAUNCH_RANKS = 16,           /* most ranks of a launch                       */
    DEVICE_PAIR_RANKS = 64,             /* most ranks that have pairs                   */
    DEVICE_PAIRS = 64,                  /* most pairs in the arguments of a launch      */
    DEVICE_TRACKS = 2 * DEVICE_PAIR_RANKS + 1
};

/** The most carried bytes of a frame, the most eager bytes of a call to a peer, and the most bytes
 *  of a slice to a peer of another process, for boxes with a window of so many bytes. */
#define DEVICE_SEGMENT_BYTES(window) ((window) / 8)
#define DEVICE_EAGER_BYTES(window) ((window) / 4)
#define DEVICE_APART_BYTES(window) ((window) / 2)
/** The most elements of 4 bytes of a message by words, the words of a slot, and the most elements
 * of a message by words, for elements or partial sums of so many bytes. */
#define DEVICE_SLOT_WIDTH(window) \
    (((window) < (uint32_t)DEVICE_WINDOW_MOST ? (window) : (uint32_t)DEVICE_WINDOW_MOST) / 64)
#define DEVICE_SLOT_WORDS(window) (DEVICE_HEADER_WORDS + DEVICE_SLOT_WIDTH(window))
#define DEVICE_SLOT_ELEMENTS(window, bytes) (DEVICE_SLOT_WIDTH(window) / ((bytes) == 8 ? 2 : 1))

/** The place of a peer. All messages to peers that are not near are carried, and those to far peers
 *  are not sent by words. */
enum {
    DEVICE_NEAR,
    DEVICE_APART, /* in another process, or boxes are in rooms      */
    DEVICE_FAR    /* on another host; boxes are in this rank's room */
};

/** A box holds messages to a rank, in the receiver's memory: device_frame frames[frames], of which
 *  frame k is in place k mod frames, char carried[window], and slots of messages by words. All
 * boxes between two ranks have the same numbers. */
typedef struct device_box {
    device_frame *frames;
    char *carried;
    uint64_t *slots; /* [DEVICE_SLOTS][DEVICE_SLOT_WORDS(window)] */
} device_box;

/** One end of a link of one lane, with its counters, in the device's memory. */
typedef struct device_link {
    device_box in, out;              /* this rank's box; the peer's box                     */
    device_receipt *receipt, *given; /* the peer writes receipt; this rank writes given     */
    uint32_t frames, window;         /* frames, a power of two, and carried bytes of a box  */
    uint32_t apart; /* DEVICE_NEAR, DEVICE_APART or DEVICE_FAR                              */
    uint32_t begun; /* 1: the peer's first frame of the current call has arrived            */
    uint64_t dst;   /* the peer's dst in the current call; 0 if unknown                     */
    uint64_t frames_in, frames_out; /* frames taken and sent                                */
    uint64_t messages_in, messages_out;
    uint64_t messages_before;     /* messages sent before the current call                      */
    uint64_t words_in, words_out; /* messages by words                                      */
    uint64_t slot_messages[DEVICE_SLOTS]; /* numbers of the messages last sent in each slot */
    uint64_t released;   /* messages that the peer is known to have released           */
    uint64_t lent;       /* number of the latest message that was not carried          */
    uint64_t carried;    /* bytes of the peer's box that have been used so far         */
    uint64_t carried_at; /* where the next ones are in the box                         */
    uint64_t carried_before[DEVICE_FRAMES_MOST]; /* `carried` before each frame             */
} device_link;

/** How a lane's call ended, in memory that the host reads. */
typedef struct device_verdict {
    uint64_t status;          /* ring_status                               */
    uint64_t peer;            /* the rank concerned                        */
    uint64_t their_signature; /* of the peer's call, for RING_ERR_MISMATCH */
    uint64_t their_call;      /* as in a frame                             */
} device_verdict;

/** The call of one rank: its program, buffers and limits. */
typedef struct device_call {
    const program_op *ops; /* [op_count] */
    const operand *operands;
    const program_peer *peers; /* [peer_count] */
    device_link *links;        /* [lanes][ranks] */
    uint64_t *numbers;         /* [lanes] number of the next call */
    device_verdict *verdicts;  /* [lanes] */
    const uint64_t *abort;     /* set by the host to end the call */
    uint64_t *stop;            /* set when a lane of the rank has failed; in device memory */
    uint64_t *ended;           /* lanes of this run that have ended; in device memory */
    const uint64_t
        *release;     /* if the run fails, it ends when the host has set this; NULL: at once */
    uint32_t *passed; /* receives `run` when all lanes have ended; NULL: the stream writes it */
    char *src, *dst, *scratch; /* scratch: [lanes][scratch_bytes] */
    const uint64_t *bases[2];  /* [ranks] of src and dst: address of each block, minus its offset in
                                  the program; NULL: the buffer is one */
    uint64_t scratch_bytes;
    uint64_t program_bytes; /* of ops to peers, if they are to be copied to shared memory; else 0 */
    uint64_t signature;
    uint64_t slice, segment; /* elements; see program */
    uint64_t words;          /* most elements of a message by words */
    uint64_t nanoseconds;    /* timeout, from the start of the call */
    const double *scale_at;  /* the factor of OP_SCALE, in device memory; NULL: it is `scale` */
    double scale;
    int32_t op_count, peer_count, slices, ranks;
    int32_t op;
    uint32_t run; /* number of the run */
} device_call;

typedef struct program_args {
    device_call calls[DEVICE_LAUNCH_RANKS];
    uint32_t ranks, lanes; /* there are ranks * lanes blocks; those of a rank are consecutive */
} program_args;

/* ---- program_pairs.h ---- */

/** A message to or from a peer, or a copy within this rank. */
typedef struct device_pair {
    char *at;         /* this rank's bytes; of a copy: the destination */
    const char *from; /* of a copy: the source                         */
    uint64_t bytes, signature;
    int32_t peer;
    uint16_t kind;  /* OP_SEND, OP_RECV or OP_COPY                     */
    uint16_t lanes; /* that share the bytes; the same at both ends     */
} device_pair;

/** The messages of a track have one peer and direction, and follow each other in the list. */
typedef struct pairs_args {
    device_call call;         /* without a program and buffers             */
    const device_pair *pairs; /* in pinned memory; NULL: they are in `few` */
    uint32_t tracks, lanes;
    uint16_t first[DEVICE_TRACKS + 1]; /* [tracks + 1] the first pair of each track */
    device_pair few[DEVICE_PAIRS];
} pairs_args;

/* ---- chores.h ---- */

enum { CHORES_MOST = 64, CHORE_THREADS = 256 };

/** What a chore does, in the order of its launch. */
enum {
    CHORE_CLEAR, /* to (bytes) = 0                                             */
    CHORE_COPY,  /* to (bytes) = from (bytes)                                  */
    CHORE_MARK,  /* the word to = 1, when what is before it is done            */
    CHORE_LOOK,  /* the word to = 1 if no word of from (bytes) is 0, else 0    */
    CHORE_DRAIN  /* the word to = 1 if peers have released all messages of the links at from
                    (bytes), else 0 */
};

/** Addresses and numbers of bytes are multiples of 8. */
typedef struct device_chore {
    uint64_t kind;
    uint64_t *to;
    const uint64_t *from;
    uint64_t bytes;
} device_chore;

typedef struct chore_args {
    device_chore chores[CHORES_MOST];
    uint32_t count;
} chore_args;

#endif
