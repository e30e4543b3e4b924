/* SPDX-License-Identifier: Apache-2.0
 *
 * fault: makes links that inject faults into others, for tests. Faults depend only on the seed, the
 * peer and the number of the frame, never on the clock or on how often a call is repeated, so a run
 * that failed can be reproduced.
 */
#ifndef RING_FAULT_H
#define RING_FAULT_H

#include "transport.h"

enum { FAULT_TEXT_MAX = 256 };

typedef struct fault_spec {
    uint64_t seed;
    double delay;    /* seconds                              */
    double drop;     /* probability                          */
    double truncate; /* probability                          */
    double lie;      /* probability                          */
    uint64_t close;  /* payload bytes both ways; UINT64_MAX: never */
} fault_spec;

/** State of the delay of the oldest frame. */
typedef struct fault_hold {
    int epoll, timer; /* -1 without a delay                      */
    bool timed;       /* the oldest frame has been seen, and `due` is set */
    bool shown;       /* the oldest frame is no longer held back */
    double due;
} fault_hold;

typedef struct fault_link {
    transport_link head;
    transport table;       /* fault's calls, the inner transport's powers              */
    transport_link *inner; /* NULL once the connection has ended */
    fault_spec spec;
    ring_status broken;
    char text[FAULT_TEXT_MAX];
    uint64_t dropped;         /* number of dropped frames */
    uint64_t dropped_flushed; /* those of them before all frames that the inner link still holds */
    size_t carried;           /* payload bytes of the oldest frame                     */
    bool truncated;           /* the oldest frame lacks its end */
    fault_hold hold;
} fault_link;

/* ---- spec.c ---- */
ring_status fault_parse(const char *text, fault_spec *spec);
/** @return true with the given probability; equal arguments give equal results.
 *  @param kind  distinguishes several decisions about one frame. */
bool fault_chance(const fault_link *l, double probability, uint64_t kind, uint64_t frame);
/** @return a random number; equal arguments give equal results. */
uint64_t fault_random(const fault_link *l, uint64_t kind, uint64_t frame);

/* ---- lie.c ---- */
/** Falsifies one field of a header, among those that the link does not check. */
void fault_lie(const fault_link *l, transport_frame *frame);

/* ---- hold.c: late delivery ---- */
ring_status fault_hold_open(fault_link *l);
void fault_hold_close(fault_link *l);
/** @return true while the oldest frame of the inner link has arrived but is not due. */
bool fault_hold_back(fault_link *l);
/** Must be called when the oldest frame has been consumed. */
void fault_hold_next(fault_link *l);
/** @return true if a frame was held back when fault_hold_back() was last called. */
bool fault_holds(const fault_link *l);
int fault_hold_fd(const fault_link *l);
/** Makes the descriptor readable when the held-back frame is due, and, if @p inner, when the inner
 *  link has news. @return false if a frame is already due. */
bool fault_hold_arm(fault_link *l, bool inner);
void fault_hold_disarm(fault_link *l);

#endif
