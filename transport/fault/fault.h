/* SPDX-License-Identifier: Apache-2.0
 *
 * fault: makes links that drop, delay, truncate or falsify the frames of others, for tests. Faults
 * depend only on the seed, the peer and the number of the frame, never on the clock or on how often
 * a call is repeated, so a run that failed can be reproduced.
 */
#ifndef RING_FAULT_H
#define RING_FAULT_H

#include "transport.h"

enum { FAULT_TEXT_MAX = 256 };

/** The faults that RING_FAULT asks for; see transport_fault_wrap(). */
typedef struct fault_spec {
    uint64_t seed;
    double delay;    /* seconds                              */
    double drop;     /* probability for each sent frame      */
    double truncate; /* probability for each received frame  */
    double lie;      /* probability for each sent frame      */
    uint64_t close;  /* payload bytes, sent plus received; UINT64_MAX: never */
} fault_spec;

/** State of the delay of the oldest unconsumed frame. */
typedef struct fault_hold {
    int epoll, timer; /* -1 without a delay                              */
    bool timed;       /* the oldest frame has arrived, and `due` is set  */
    bool shown;       /* the oldest frame is no longer held back         */
    double due;       /* when the oldest frame is delivered; clock_now() */
} fault_hold;

typedef struct fault_link {
    transport_link head;
    transport table;       /* the calls of fault.c, and the inner transport's powers     */
    transport_link *inner; /* NULL once the connection has ended */
    fault_spec spec;
    ring_status broken;        /* RING_OK, or the status of the failure that broke the link */
    char text[FAULT_TEXT_MAX]; /* the text of that failure */
    uint64_t dropped;          /* number of dropped frames */
    uint64_t dropped_flushed;  /* number of frames that were dropped before the oldest frame that
                                  the inner link has not flushed */
    size_t carried;            /* payload bytes of the oldest frame */
    bool truncated;            /* only half of the oldest frame's payload will be delivered */
    fault_hold hold;
} fault_link;

/* ---- spec.c ---- */
/** Parses the text of RING_FAULT. @return RING_OK or RING_ERR_CONFIG. */
ring_status fault_parse(const char *text, fault_spec *spec);
/** @param kind  distinguishes several decisions about one frame.
 *  @return true with the given probability; equal arguments give equal results. */
bool fault_chance(const fault_link *l, double probability, uint64_t kind, uint64_t frame);
/** @return a random number; equal arguments give equal results. */
uint64_t fault_random(const fault_link *l, uint64_t kind, uint64_t frame);

/* ---- lie.c ---- */
/** Falsifies one of the fields of a header that the link itself does not check. */
void fault_lie(const fault_link *l, transport_frame *frame);

/* ---- hold.c: late delivery ---- */
/** Creates the descriptors of l->hold if the spec has a delay. */
ring_status fault_hold_open(fault_link *l);
void fault_hold_close(fault_link *l);
/** The caller has peeked the oldest frame of the inner link; the first such call starts its delay.
 *  @return true while the frame is held back. */
bool fault_hold_back(fault_link *l);
/** Must be called when the oldest frame has been consumed. */
void fault_hold_next(fault_link *l);
/** @return true if a frame was held back when fault_hold_back() was last called. */
bool fault_holds(const fault_link *l);
/** @return the descriptor on which the link's callers sleep. */
int fault_hold_fd(const fault_link *l);
/** Lets that descriptor become readable when the held-back frame is due and, if @p inner, when the
 *  inner link's descriptor is readable. @return false if a frame is already due. */
bool fault_hold_arm(fault_link *l, bool inner);
void fault_hold_disarm(fault_link *l);

#endif
