/* SPDX-License-Identifier: Apache-2.0
 *
 * accelerator_programs: defines the interface to accelerators that run whole programs
 * (program_ops.h). The accelerators communicate through each other's memory, so a call costs each
 * rank one launch, and the host moves no data.
 *
 * Each rank of a communicator attaches a seat to its accelerator, sends its card to the other
 * ranks, and connects the seat when it has received all cards. If one rank cannot connect, no rank
 * uses its seat, and the host executes their calls. Ranks of a process on the same accelerator
 * share one launch per call, which the last of them to make the call starts.
 */
#ifndef RING_ACCELERATOR_PROGRAMS_H
#define RING_ACCELERATOR_PROGRAMS_H

#include "accelerator.h"
#include "device_frames.h"
#include "program_ops.h"

/** A rank's memory and state on an accelerator. */
typedef struct accelerator_seat accelerator_seat;

/** The lanes of a seat, which run calls side by side, and what each has. */
typedef struct accelerator_shape {
    int32_t lanes;
    uint32_t frames, window; /* of a box for one peer: its frames, and bytes of data  */
    uint32_t scratch;        /* bytes of partial sums                                 */
} accelerator_shape;

/** The costs of running programs on an accelerator. */
typedef struct accelerator_rates {
    double start;   /* seconds from the launch of a run to its first op           */
    double message; /* seconds from the sender's store until the receiver goes on */
    double link;    /* bytes per second from one accelerator to another           */
    double memory;  /* bytes per second that a run reads and writes               */
} accelerator_rates;

/** Memory of the host through which accelerators communicate that cannot access each other's. */
typedef struct accelerator_room {
    int32_t process, file; /* its process, and its descriptor there */
    uint64_t inode, bytes;
} accelerator_room;

/** Describes a rank's seat to the other ranks. It is sent to them as plain bytes. */
typedef struct accelerator_card {
    unsigned char device[16];  /* id of the device */
    unsigned char process[16]; /* id of the process */
    int32_t host;              /* number of the host, on which these ids are unique */
    int32_t shuts;             /* 1: other devices must not access its memory  */
    int32_t ordinal;           /* number of the device in its process          */
    int32_t blocks;            /* blocks that can run at once on its device    */
    int32_t admitted;          /* those that are set aside for its calls       */
    int32_t generation;        /* of the device, whose rates depend on it      */
    int32_t processes;         /* among which those of the device were divided */
    int32_t concurrent;        /* 1: the device runs kernels of several processes at once */
    accelerator_shape shape;   /* of the seat's memory                         */
    int32_t member;            /* rank in the membership                       */
    uint64_t offset;           /* of the seat in its member's memory           */
    uint64_t memory, group;    /* addresses in its process                     */
    unsigned char handle[64];  /* opens the memory in other processes; zeros: it is not shared */
    accelerator_room room;
} accelerator_card;

/** The limits that a communicator's programs must respect. They are the same on all ranks. */
typedef struct accelerator_terms {
    accelerator_shape shape; /* what each seat has at least; lanes: most channels */
    bool captures;           /* runs may be captured in graphs */
    bool apart;              /* ranks belong to several processes, or all messages are carried */
    bool by_rooms;           /* messages within a host go through its memory */
    bool far;                /* ranks are on several hosts, which carry frames between them */
    size_t segment, window; /* most payload bytes of a frame; most frames that a sender may be ahead
                               of the receiver */
    size_t eager, scratch;  /* most bytes that a call may send to one peer eagerly; most bytes of
                               partial sums */
    size_t outstanding;     /* most bytes of a slice in flight to a peer              */
    accelerator_rates rates; /* of the slowest device */
} accelerator_terms;

/** A lowered program, which keep() copies. */
typedef struct accelerator_program {
    const program_op *ops;     /* [op_count]      */
    const operand *operands;   /* [operand_count] */
    const program_peer *peers; /* [peer_count]    */
    int32_t op_count, operand_count, peer_count, slices, lanes;
    size_t slice, segment, scratch;
    uint64_t signature;
    ring_dtype dtype;
    ring_op op;
} accelerator_program;

/** The arguments of one run of a program. */
typedef struct accelerator_run {
    const void *kept; /* the program, from keep() */
    const void *src;
    void *dst;
    const void *const *lists[2]; /* of src and dst: addresses of the blocks, one for each rank, with
                                    their places in the buffer of which the program knows; NULL: one
                                    buffer */
    const size_t *places[2];     /* in elements */
    void *stream;            /* NULL: the seat's own                                           */
    bool after_default;      /* begins after all work that the device's default stream has now */
    accelerator_stop **gate; /* not NULL: receives a stop that holds the stream before the run   */
    const double *scale_at;  /* the factor of RING_PREMUL_SUM in the accelerator's memory, read when
                                the run begins; NULL: it is `scale` */
    double scale;
    bool holds;     /* if the run fails, `stream` stays stopped there until release() */
    double timeout; /* seconds after the run's start on the accelerator                 */
    double until;   /* for ranks that share a launch: the time until which start() waits for the
                       others; < 0: it does not wait, and settle() must follow          */
} accelerator_run;

/** A message to or from a rank, or a copy within this rank, in memory of the accelerator. */
typedef struct accelerator_pair {
    int kind; /* OP_SEND, OP_RECV or OP_COPY */
    int32_t peer;
    int32_t lanes;   /* that share the bytes, at most those of the terms; the same at both ends */
    const void *src; /* of a send or copy           */
    void *dst;       /* of a receive or copy        */
    size_t bytes;
    uint64_t signature; /* the same at both ends */
} accelerator_pair;

/** The place of a call in a stream, as in accelerator_run. */
typedef struct accelerator_place {
    void *stream;
    bool after_default;
    accelerator_stop **gate;
} accelerator_place;

/** Messages that start together. Those to a peer are matched with its receives in their order. */
typedef struct accelerator_pairs {
    const accelerator_pair *of;
    size_t count;
    const accelerator_place *places; /* the streams that the run waits for, and that wait for it */
    size_t place_count;
    bool holds; /* as in accelerator_run */
    double timeout;
} accelerator_pairs;

/** The boxes of one lane between this rank and one on another host, in memory of the host. A frame
 *  with number k, from 1, is in place (k - 1) mod terms.shape.frames. The bytes of a frame are
 * where device_frame.at says, which is the end of the previous frame's, rounded up to 16, or 0 if
 * they would not end within terms.shape.window. */
typedef struct accelerator_boxes {
    device_frame *in, *out; /* the accelerator writes `out` and reads `in` */
    char *in_bytes, *out_bytes;
    device_receipt *in_receipt;        /* of the peer, for frames of `out` */
    const device_receipt *out_receipt; /* for frames of `in`               */
    char *memory[2]; /* the memory of all of the seat's boxes: those `in`, those `out` */
    size_t bytes;    /* of each                                                      */
} accelerator_boxes;

/** The failure of a run. */
typedef struct accelerator_verdict {
    ring_status status;
    int32_t peer;             /* the rank concerned */
    uint64_t their_signature; /* with RING_ERR_MISMATCH: signature of the peer's call */
    uint64_t their_bytes;     /* of the peer's message, if the call is a send         */
} accelerator_verdict;

/** Functions of an accelerator. Only one thread at a time may call those of a seat, except abort().
 */
typedef struct accelerator_programs {
    /** Creates a seat for a rank, without a call into the driver. @param parent  the seat in the
     *  communicator from which this one is derived, whose memory has room for some more seats,
     *  until it is full; the new seat keeps this memory. NULL: attach() allocates memory, for this
     *  seat and those that are derived from it. */
    ring_status (*create)(const accelerator *a, const accelerator_seat *parent, int rank, int ranks,
                          accelerator_seat **out);
    /** Gives the seat its memory. If this fails, the caller only detaches it.
     *  @param lanes  most lanes of its calls. @param far  true: ranks are on several hosts.
     *  @param[out] card  all members are filled in except `process`, `host` and `shuts`. */
    ring_status (*attach)(accelerator_seat *s, int lanes, bool far, accelerator_card *card);
    /** Opens the memory of the other ranks' accelerators, if the seat is not derived, and checks at
     *  the same time as they do that it can be reached. Ranks on other hosts are left out.
     *  @param cards  [ranks].
     *  @return RING_ERR_UNSUPPORTED: one cannot be reached. */
    ring_status (*open)(accelerator_seat *s, const accelerator_card *cards);
    /** Connects the seat with the other ranks' seats. @param cards  [ranks]; those of this process
     *  stay valid until this returns. @param by_rooms  true: on some rank open() has failed, so
     *  messages go through memory of the host; not for derived seats, which do as their parent.
     *  @return RING_ERR_UNSUPPORTED: these accelerators cannot run programs together. */
    ring_status (*connect)(accelerator_seat *s, const accelerator_card *cards, bool by_rooms,
                           accelerator_terms *out);
    /** Finds the boxes between a connected seat and a rank on another host. */
    void (*boxes)(const accelerator_seat *s, int rank, int lane, accelerator_boxes *out);
    /** Undoes open() and connect(), even if they have failed. No run may have been started.
     * Afterwards the seat does not access the memory of the other ranks. */
    void (*disconnect)(accelerator_seat *s);
    /** Copies the program to memory that the accelerator reads. */
    ring_status (*keep)(accelerator_seat *s, const accelerator_program *p, void **out);
    /** Frees the copy. No run of it may be in progress. */
    void (*drop)(void *kept);
    /** Enqueues a run on the stream, whose later work begins when the run is complete.
     *  @param captured  the stream is being captured, which the terms allow. Each replay of its
     *  graph then runs the program, and these runs have no numbers.
     *  @param[out] number  number of the run, from 1. */
    ring_status (*start)(accelerator_seat *s, const accelerator_run *run, bool captured,
                         uint32_t *number);
    /** Makes the stream of a run that start() has announced wait for the end of the run. Before
     *  that it waits for the other ranks to make the call, at most until the time @p until, because
     *  a run that all ranks have announced is faster. Does nothing for other runs, or if a later
     *  start() has settled the run. */
    ring_status (*settle)(accelerator_seat *s, uint32_t number, double until);
    /** Enqueues a run of messages as start() does, on the first of the streams of its places. */
    ring_status (*start_pairs)(accelerator_seat *s, const accelerator_pairs *pairs, bool captured,
                               uint32_t *number);
    /** @return RING_OK if all runs up to @p number are complete, RING_IN_PROGRESS, or the status of
     *  a failed run.
     *  @param[out] out      describes the failure, if a run has failed.
     *  @param[out] missing  a rank of this process that has not made the call, so that the run has
     *                       not begun; -1: all have. */
    ring_status (*state)(const accelerator_seat *s, uint32_t number, accelerator_verdict *out,
                         int *missing);
    /** Ends all runs that are in progress or begin later. Any thread may call it, and it makes no
     *  call into the driver. */
    void (*abort)(accelerator_seat *s);
    /** After abort(), lets those streams continue whose runs have not begun, or hold them. If ranks
     *  share launches, this holds for the streams of all of them. */
    void (*release)(accelerator_seat *s);
    /** Changes the number of communicators of the process that may keep streams stopped for any
     *  time (`holds`). While there are any, detach() does not wait for streams. */
    void (*count_holders)(const accelerator *a, int change);
    /** Frees the seat. Its runs must be complete; after abort() its memory is not used again. */
    void (*detach)(accelerator_seat *s);
} accelerator_programs;

#endif
