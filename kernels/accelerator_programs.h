/* SPDX-License-Identifier: Apache-2.0
 *
 * accelerator_programs: accelerators that run whole programs (program_ops.h). They meet in each
 * other's memory, so that a call costs its ranks a launch each, and the host moves nothing.
 *
 * Each rank of a communicator takes a seat, and tells the others of it by a card. With the cards of
 * all ranks it meets them. Where any rank cannot, none does, and the host drives their calls.
 * Ranks of a process whose accelerator is the same one share launches, of which the last of them to
 * make a call starts it.
 */
#ifndef RING_ACCELERATOR_PROGRAMS_H
#define RING_ACCELERATOR_PROGRAMS_H

#include "accelerator.h"
#include "program_ops.h"

/** Of a rank, on an accelerator. */
typedef struct accelerator_seat accelerator_seat;

/** A rank's seat, as the others need to know it. Plain data of one host's ranks. */
typedef struct accelerator_card {
    unsigned char device[16]; /* of no other device                               */
    unsigned char process[16];
    int32_t ordinal;          /* of the device, in its process                    */
    int32_t lanes;            /* that the rank has memory for                     */
    int32_t blocks;           /* that run at once on its device                   */
    uint64_t memory, group;   /* addresses in its process                         */
    unsigned char handle[64]; /* of the memory, for other processes               */
} accelerator_card;

/** What programs for it may need. The same of all ranks. */
typedef struct accelerator_terms {
    int32_t lanes;          /* channels, at most                      */
    bool captures;          /* graphs may keep runs                   */
    bool apart;             /* ranks are of several processes         */
    size_t segment, window; /* bytes of a carried frame; frames ahead */
    size_t eager, scratch;  /* bytes that a call may send a peer ahead; of partial sums */
    size_t outstanding;     /* bytes that a slice may send a peer     */
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

/** A start of it. */
typedef struct accelerator_run {
    const void *kept; /* by keep() */
    const void *src;
    void *dst;
    void *stream;
    double timeout; /* seconds, from when the accelerator comes to it */
} accelerator_run;

/** How a run failed. */
typedef struct accelerator_verdict {
    ring_status status;
    int32_t peer;             /* the rank that it was about  */
    uint64_t their_signature; /* RING_ERR_MISMATCH: of its call */
} accelerator_verdict;

/** Functions of an accelerator. Those of one seat are called by one thread at a time, but abort().
 */
typedef struct accelerator_programs {
    /** Takes a seat. @param lanes  at most. @param[out] card  with all but `process`. */
    ring_status (*sit)(const accelerator *a, int rank, int ranks, int lanes, accelerator_seat **out,
                       accelerator_card *card);
    /** @param cards  [ranks]; those of this process stay in it until this returns.
     *  @return RING_ERR_UNSUPPORTED: these accelerators cannot run programs together. */
    ring_status (*meet)(accelerator_seat *s, const accelerator_card *cards, accelerator_terms *out);
    /** Undoes meet(), also one that failed, before any run: reaches the others' memory no more. */
    void (*part)(accelerator_seat *s);
    /** A copy of the program, where the accelerator reads it. */
    ring_status (*keep)(accelerator_seat *s, const accelerator_program *p, void **out);
    /** No run of it is under way. */
    void (*drop)(void *kept);
    /** Asks the stream for a run; it goes on behind the end of it.
     *  @param captured  the stream is, which the terms allow: each replay runs it, and it has no
     * number.
     *  @param[out] number  of the run, from 1. */
    ring_status (*start)(accelerator_seat *s, const accelerator_run *run, bool captured,
                         uint32_t *number);
    /** @return RING_OK: all runs up to that number are over; RING_IN_PROGRESS; or how one failed,
     *  with @p out filled in. @param[out] waits  not begun: ranks of this process are missing. */
    ring_status (*state)(const accelerator_seat *s, uint32_t number, accelerator_verdict *out,
                         bool *waits);
    /** Ends runs that are under way, and those that begin. Any thread; calls no driver. */
    void (*abort)(accelerator_seat *s);
    /** After abort(): has streams go on whose runs have not begun. */
    void (*release)(accelerator_seat *s);
    /** Gives the seat back. Runs are over; after abort() its memory is not used again. */
    void (*leave)(accelerator_seat *s);
} accelerator_programs;

#endif
