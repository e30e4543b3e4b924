/* SPDX-License-Identifier: Apache-2.0
 *
 * control: one channel from hello to goodbye. A rank that joins brings its card to rank 0; the
 * cards of all come down a tree; the tree's connections stay and carry the start's barriers,
 * beats, the verdict that ends the communicator, and goodbyes. One thread a process serves
 * all its communicators (control_thread.h); calls that wait are waiting for that thread.
 *
 *     joining ──▶ cards ──▶ linking ──▶ running ──▶ leaving
 *        └───────────┴─────────┴───────────┴──▶ a verdict: final, the same on every rank
 *
 * Every connection of a communicator, data links too, begins with the same handshake
 * (handshake.h), which proves job, communicator, epoch, pair, and what the connection is for.
 *
 * Locks: none of the caller's is taken here. All functions may be called from any thread,
 * except where it says so.
 */
#ifndef RING_CONTROL_H
#define RING_CONTROL_H

#include "base.h"
#include "card.h"
#include "settings.h"

enum {
    CONTROL_FANOUT = 4, /* of the tree                                     */
    CONTROL_TEXT = 496  /* bytes of a verdict's text, with the NUL          */
};

/** All ranks as everyone knows them. */
typedef struct control_world {
    int rank, size;
    control_card *cards; /* [size], the same on every rank                            */
    settings settings;   /* rank 0's where all must agree, else this rank's            */
    char launcher[32];
    double deadline;     /* end of init                                               */
} control_world;

/* ---- Joining ---------------------------------------------------------------------------- */

/** Makes a unique id. It holds a port, where nobody listens until rank 0 joins; after
 *  RING_INIT_TIMEOUT that nobody joined the port is given back. See ring_get_unique_id(). */
ring_status control_make_id(ring_unique_id *id);

/** Gathers and hands out the cards, proving everybody.
 *  @param transports  bit mask for this rank's card. @param[out] out  control_free() it. */
ring_status control_join(const settings *s, const ring_unique_id *id, int size, int rank,
                         uint32_t transports, control_world **out);
/** The same from the environment. */
ring_status control_join_env(const settings *s, uint32_t transports, control_world **out);

/** A barrier: RING_OK when every rank has called it with @p mine RING_OK; else the verdict,
 *  which is the first failing rank's status and text, on every rank. */
ring_status control_agree(control_world *world, ring_status mine);
/** Ahead of control_agree() with the same failure: makes it known before the effects of what the
 *  caller closes now. */
void control_announce(control_world *world, ring_status mine);

/** The start is over: from here on a rank may leave in order.
 *  @param wake  called once a verdict is there, to end sleeps; control's lock is held, so it
 *               must not call control nor wait. */
void control_start(control_world *world, void (*wake)(void *), void *context);

/** Says goodbye, if started, and ends the connections; peers have what was said, unless they do
 *  not read for half a second. Not by the control thread. */
void control_leave(control_world *world);
/** Leaves if need be, and frees. */
void control_free(control_world *world);

/* ---- The verdict ------------------------------------------------------------------------ */

/** The verdict that ended the communicator, RING_OK while it lives. One atomic load. */
ring_status control_verdict(const control_world *world);
/** Text of the verdict: the same on every rank; "" while alive. */
const char *control_text(const control_world *world);

/** Has this become the verdict, unless there is one. Of several at the same moment the top of
 *  the tree takes one. On return there is a verdict, and the kernel has it for this rank's
 *  neighbours: the caller may end its process.
 *  @param text  should name rank, host, call and cause; cut to CONTROL_TEXT - 1 bytes. */
void control_report(control_world *world, ring_status status, const char *text);
/** After a data link to @p peer broke: waits up to 0.3 s for a verdict that names the real
 *  culprit; if none comes, reports that @p peer was lost, with @p what. */
void control_suspect(control_world *world, int peer, const char *what);
/** @return true if @p peer has said goodbye (left in order). */
bool control_left(const control_world *world, int peer);

/* ---- Refused calls ---------------------------------------------------------------------- */

/** A call that was refused for its arguments. It has its number all the same. */
typedef struct control_refusal {
    uint64_t number;          /* of the call: among collectives, or among those of the pair     */
    int32_t peer;             /* of a send or recv; -1: a collective                            */
    int32_t sends;            /* it was a send                                                  */
    char text[CONTROL_TEXT - 16];
} control_refusal;

/** Tells all ranks, by and by; returns at once. */
void control_refuse(control_world *world, const control_refusal *refusal);

/** A refusal of @p rank; @p refusal is valid during the call, its text fit to be shown. Called by
 *  the control thread, control's lock held: it must not call control nor wait. */
typedef void control_refusal_sink(void *context, int rank, const control_refusal *refusal);
void control_set_refusal_sink(control_world *world, control_refusal_sink *sink, void *context);

/* ---- Data sockets ----------------------------------------------------------------------- */

/** What a data socket is for; both ends prove the same. */
typedef struct control_purpose {
    uint16_t lane, index;
    uint16_t transport; /* its number, transport_all()[i] */
    bool local;         /* AF_UNIX: both ranks are on one host */
} control_purpose;

/** Takes a data socket: one that was dialed from here, or one that a peer dialed.
 *  @param status  RING_OK: fd is a blocking socket and the taker's. Else a control_dial() that
 *                 failed, fd is -1, fail_text() says why.
 *  @return false if nobody here wants it: it is closed. Called by any thread, control's lock
 *          held: it must not call control, nor wait, nor take a lock under which control is
 *          called. */
typedef bool control_sink(void *context, int peer, const control_purpose *purpose,
                          ring_status status, int fd);

/** Who takes this communicator's data sockets; NULL: nobody, and they are closed. To be set ahead
 *  of a barrier that comes before the first dial of any rank. */
void control_set_sink(control_world *world, control_sink *sink, void *context);

/** Opens a socket to @p peer, at any time after joining; the sinks of both ranks get it. Of a
 *  pair the higher rank dials, so that two that want each other open one socket. Tries until
 *  @p deadline. */
ring_status control_dial(control_world *world, int peer, const control_purpose *purpose,
                         double deadline);

/** How this rank reaches another. */
typedef struct control_route {
    uint16_t transport;
    bool local;
} control_route;

/** One socket to every other rank for each lane. All ranks call it; no deadlock. When one rank
 *  fails, all do, with its text; then only control_free() is left to do.
 *  @param routes   [size], that to this rank is not used.
 *  @param[out] fds the caller's arrays: fds[lane][rank], blocking sockets, -1 for this rank
 *                  (on failure for all). */
ring_status control_connect(control_world *world, const control_route *routes, int lanes,
                            int **fds);

/* ---- For the rooms above ---------------------------------------------------------------- */

/** What the thread runs beside the channel: @p task is called after control_kick(), and then every
 *  @p period seconds for as long as it returns true; else the thread sleeps. It is called with
 *  no lock held, and must return within milliseconds: beats wait for it. It must not wait for a
 *  lock that is held over control_leave(). To be set before the first communicator is made. */
void control_set_task(bool (*task)(void), double period);
/** Has the task run soon. Costs a fence and a load while it runs anyway, and one wake-up at the
 *  beginning of a burst. Only while the caller has a communicator of more than one rank. */
void control_kick(void);

/** What this rank has said on the channel so far, handshakes apart. */
typedef struct control_counts {
    uint64_t messages, bytes;
    int connections; /* open now */
} control_counts;
control_counts control_count(const control_world *world);

#endif
