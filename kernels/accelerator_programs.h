/* SPDX-License-Identifier: Apache-2.0
 *
 * accelerator_programs: accelerators that run whole programs (program_ops.h). They communicate
 * through each other's memory, so a call costs its ranks one launch each, and the host moves no
 * data.
 *
 * Each rank of a communicator takes a seat, and sends its card to the others; with all cards it
 * meets them. If one rank cannot, none does, and the host drives their calls. Ranks of a process on
 * the same accelerator share launches: the last of them to make a call starts it.
 */
#ifndef RING_ACCELERATOR_PROGRAMS_H
#define RING_ACCELERATOR_PROGRAMS_H

#include "accelerator.h"
#include "program_ops.h"

/** Of a rank, on an accelerator. */
typedef struct accelerator_seat accelerator_seat;

/** A rank's seat as the other ranks see it. Plain data, for ranks of one host. */
typedef struct accelerator_card {
    unsigned char device[16]; /* unique to the device */
    unsigned char process[16];
    int32_t ordinal;          /* of the device, in its process                    */
    int32_t lanes;            /* lanes that the rank has memory for */
    int32_t blocks;           /* blocks that run at once on its device */
    uint64_t memory, group;   /* addresses in its process                         */
    unsigned char handle[64]; /* of the memory, for other processes               */
} accelerator_card;

/** Requirements of a communicator's programs. The same on all ranks. */
typedef struct accelerator_terms {
    int32_t lanes;          /* channels, at most                      */
    bool captures;          /* graphs may capture runs */
    bool apart;             /* ranks belong to several processes */
    size_t segment, window; /* bytes of a carried frame; frames ahead */
    size_t eager, scratch;  /* most bytes that a call sends a peer ahead; bytes of partial sums */
    size_t outstanding;     /* most bytes of a slice under way to a peer */
} accelerator_terms;

/** A lowered program. Copied by keep(). */
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

/** The arguments of a run. */
typedef struct accelerator_run {
    const void *kept; /* from keep() */
    const void *src;
    void *dst;
    void *stream;
    double timeout; /* seconds, from the run's start on the accelerator */
} accelerator_run;

/** The failure of a run. */
typedef struct accelerator_verdict {
    ring_status status;
    int32_t peer;             /* the rank concerned */
    uint64_t their_signature; /* RING_ERR_MISMATCH: of the peer's call */
} accelerator_verdict;

/** Functions of an accelerator. One thread at a time calls those of a seat, except abort().
 */
typedef struct accelerator_programs {
    /** Takes a seat. @param lanes  at most. @param[out] card  all but `process`. */
    ring_status (*attach)(const accelerator *a, int rank, int ranks, int lanes,
                          accelerator_seat **out, accelerator_card *card);
    /** Connects the seat with the other ranks' seats. @param cards  [ranks]; those of this process
     *  stay valid until this returns.
     *  @return RING_ERR_UNSUPPORTED: these accelerators cannot run programs together. */
    ring_status (*connect)(accelerator_seat *s, const accelerator_card *cards,
                           accelerator_terms *out);
    /** Undoes connect(), also one that failed, before any run: reaches the others' memory no more.
     */
    void (*disconnect)(accelerator_seat *s);
    /** A copy of the program, where the accelerator reads it. */
    ring_status (*keep)(accelerator_seat *s, const accelerator_program *p, void **out);
    /** Frees the copy. No run of it is under way. */
    void (*drop)(void *kept);
    /** Enqueues a run on the stream, which continues after it.
     *  @param captured  the stream is being captured, which the terms allow: each replay runs it,
     *  without a number.
     *  @param[out] number  of the run, from 1. */
    ring_status (*start)(accelerator_seat *s, const accelerator_run *run, bool captured,
                         uint32_t *number);
    /** @return RING_OK: all runs up to @p number are complete; RING_IN_PROGRESS; or the failure of
     *  one, with @p out filled in. @param[out] waits  not begun: ranks of this process are
     *  missing. */
    ring_status (*state)(const accelerator_seat *s, uint32_t number, accelerator_verdict *out,
                         bool *waits);
    /** Ends runs that are under way or begin later. Any thread; calls no driver. */
    void (*abort)(accelerator_seat *s);
    /** After abort(): lets streams continue whose runs have not begun. */
    void (*release)(accelerator_seat *s);
    /** Gives the seat back. Runs are complete; after abort() its memory is not used again. */
    void (*detach)(accelerator_seat *s);
} accelerator_programs;

#endif
