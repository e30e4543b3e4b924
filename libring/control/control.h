/* SPDX-License-Identifier: Apache-2.0
 *
 * control: one channel from hello to goodbye. A rank that joins brings its card to rank 0; the
 * cards of all come down a tree; the tree's connections stay and carry the start's barriers, beats,
 * verdicts, losses and goodbyes. One thread a process serves all its memberships
 * (control_thread.h); calls that wait are waiting for that thread.
 *
 *     joining ──▶ cards ──▶ linking ──▶ running ──▶ leaving
 *        └───────────┴─────────┴──▶ failed: the same verdict on every rank
 *
 * A membership is the result of one start. Its communicators share connections, listeners and
 * thread: the first has all ranks, control_derive() makes more without a socket or a message. Each
 * ends by a verdict of its own, and the membership lives until the last one was freed. Ranks in
 * these functions are those of the communicator they are given.
 *
 * Every connection of a membership, data links too, begins with the same handshake (handshake.h),
 * which proves job, membership, communicator, pair, and the connection's purpose.
 *
 * Locks: control takes no lock of its callers. All functions may be called from any thread, except
 * where it says so.
 */
#ifndef RING_CONTROL_H
#define RING_CONTROL_H

#include "base.h"
#include "card.h"
#include "settings.h"

enum {
    CONTROL_FANOUT = 4,      /* of the tree                                     */
    CONTROL_SOCKET_KEY = 32, /* bytes of a connection's keys                     */
    CONTROL_TEXT = 488       /* bytes of a verdict's text, with the NUL          */
};

/** All ranks of a communicator, with facts that are equal on all of them. */
typedef struct control_world {
    uint64_t id;       /* the same on every rank; 0: that of the start               */
    const void *start; /* of this rank: the same in all communicators of its start    */
    int rank, size;
    control_card *cards; /* [size], the same on every rank; card.rank is that at the start */
    settings settings;   /* rank 0's where all must agree, else this rank's            */
    char launcher[32];
    double deadline; /* end of init                                               */
} control_world;

/* ---- Joining ---------------------------------------------------------------------------- */

/** Makes a unique id. It holds a port, at which rank 0 listens once it joins; without a joining
 *  rank 0 within RING_INIT_TIMEOUT the port is released. See ring_get_unique_id(). */
ring_status control_make_id(ring_unique_id *id);

/** Gathers and hands out the cards, with a proof from every rank.
 *  @param transports  bit mask for this rank's card. @param[out] out  control_free() it. */
ring_status control_join(const settings *s, const ring_unique_id *id, int size, int rank,
                         uint32_t transports, control_world **out);
/** The same from the environment. */
ring_status control_join_env(const settings *s, uint32_t transports, control_world **out);

/** Instead of joining: this rank has failed before, by @p status and fail_text(). Notifies the
 *  other ranks if it can reach them; that takes about a second, for rank 0 some more while ranks
 *  come.
 *  @param id  NULL: it would have joined by the environment. @return @p status. */
ring_status control_refuse(const settings *s, const ring_unique_id *id, int size, int rank,
                           ring_status status);

/** A barrier of the communicator of the start: RING_OK when every rank has called it with @p mine
 *  RING_OK; else the verdict, which is the first failing rank's status and text, on every rank. */
ring_status control_agree(control_world *world, ring_status mine);
/** Ahead of control_agree() with the same failure: announces it before peers see the effects of
 *  what the caller closes now. */
void control_announce(control_world *world, ring_status mine);

/** The start is over: from here on a rank may leave in order, and a lost one ends only its own
 *  communicators. Of a derived communicator it only registers @p wake.
 *  @param wake  called once a verdict is there, to end sleeps; control's lock is held, so it
 *               must not call control nor wait. At once, if there is one. */
void control_start(control_world *world, void (*wake)(void *), void *context);

/** Ends all callbacks of this communicator. The last one of a membership says goodbye, if started,
 *  and closes the connections; messages sent before arrive, unless a peer does not read for a
 *  second. Not by the control thread. */
void control_leave(control_world *world);
/** Leaves, unless that was done, and frees. */
void control_free(control_world *world);

/* ---- More communicators of one membership ------------------------------------------------ */

/** A communicator of some ranks of @p of, each of which makes it with the same arguments. No
 *  message is sent. If one of them is known to be lost it has its verdict at once.
 *  @param id     given by control_new_id() on one of the ranks.
 *  @param ranks  [count] ranks of @p of in their new order, this one among them. */
ring_status control_derive(control_world *of, uint64_t id, const int *ranks, int count,
                           control_world **out);
/** An id that no rank of the membership gives a second time. */
uint64_t control_new_id(control_world *world);

/** A communicator of the ranks that are left of @p broken, which has a verdict (else
 *  RING_ERR_USAGE). Collective over them: waits until all ranks that are neither lost nor gone have
 *  called it; a rank that has not by @p deadline is out. Their order stays. Every caller gets the
 *  same answer.
 *  RING_ERR_PEER: this rank is out; or a rank of this host is stopped, or half of the ranks are cut
 *  off: once they are gone, or back, it can be called again. */
ring_status control_shrink(control_world *broken, double deadline, control_world **out);

/* ---- Calls of ranks at different times ---------------------------------------------------- */

/** A barrier with a deadline. RING_OK when all ranks of the communicator have called it;
 *  RING_IN_PROGRESS on all that had when the earliest of their deadlines passed; or the verdict. A
 *  rank that calls later is in the next round. Calls of several threads of a rank are one. The
 *  communicator lives on. @param[out] came  [size] the ranks that had called. */
ring_status control_meet(control_world *world, double deadline, bool *came);

/** Ranks of a communicator, in an order, that make a call together: the same list on each. */
typedef struct control_list {
    const int *ranks; /* [count] of the communicator */
    int count, tag;   /* calls of one list that may be under way at once differ in the tag */
    double deadline;
} control_list;

/** An id for these ranks, all of which call this, and no others. RING_ERR_TIMEOUT on all that had
 *  when the earliest deadline passed: the text names the others. RING_ERR_USAGE: another thread of
 *  this rank waits with the same list and tag. A verdict of @p world ends it.
 *  @param[out] id  for control_derive(). */
ring_status control_agree_id(control_world *world, const control_list *list, uint64_t *id);
/** Returns RING_OK when all ranks of the list have called this with @p mine RING_OK; if one could
 *  not make its part (its @p mine and fail_text()), or was lost, an error on all.
 *  @param made  the communicator of that id here; NULL with an error. */
ring_status control_agree_made(control_world *world, const control_list *list, uint64_t id,
                               control_world *made, ring_status mine);

/* ---- The verdict ------------------------------------------------------------------------ */

/** The verdict that ended the communicator, RING_OK while it lives. One atomic load. */
ring_status control_verdict(const control_world *world);
/** Text of the verdict: the same on every rank; "" while alive. Where it names a lost rank, that is
 *  its rank at the start. */
const char *control_text(const control_world *world);

/** Proposes this failure as the verdict, unless there is one. Of several proposals the top of the
 *  tree takes one; a proposal that it does not answer in 0.2 s holds. Returns at once.
 *  @param text  should name rank, host, call and cause; cut to CONTROL_TEXT - 1 bytes. */
void control_propose(control_world *world, ring_status status, const char *text);
/** After a data link to @p peer broke: proposes that @p peer was lost, with @p what, unless a
 *  verdict or another proposal comes within 0.4 s and names the real culprit. Returns at once. */
void control_suspect(control_world *world, int peer, const char *what);
/** The verdict, RING_OK: none yet. The kernel has it for this rank's neighbours: the caller may end
 *  its process. Overdue proposals are decided in this call: the control thread need not run. */
ring_status control_answer(control_world *world);
/** control_propose(), and waits for the answer, 0.2 s at most. */
void control_report(control_world *world, ring_status status, const char *text);
/** @return true if @p peer has said goodbye (left the membership in order). */
bool control_left(const control_world *world, int peer);

/* ---- Statements ------------------------------------------------------------------------- */

/** A rank's statement about a call, to all ranks of a communicator. */
typedef struct control_statement {
    uint64_t number;           /* of the call: among collectives, or among those of the pair  */
    uint64_t signature, count; /* of the call that it waits in; 0 when refused                */
    int32_t peer;              /* of a send or recv; -1: a collective                         */
    int32_t root;
    int32_t sends;   /* it is a send                                                */
    int32_t refused; /* for its arguments, see the text; else the rank waits in it */
    char text[CONTROL_TEXT - 40];
} control_statement;

/** Sends a statement to all ranks; returns at once. A statement that a rank waits in a call is sent
 *  on once, whichever rank makes it. */
void control_state(control_world *world, const control_statement *statement);

/** A statement of @p rank; @p statement is valid during the call, its text fit to be shown. Called
 *  by the control thread, control's lock held: it must not call control, nor wait. */
typedef void control_statement_sink(void *context, int rank, const control_statement *statement);
/** The latest statements are delivered first. NULL: no sink. */
void control_set_statement_sink(control_world *world, control_statement_sink *sink, void *context);

/* ---- Data sockets ----------------------------------------------------------------------- */

/** The purpose of a data socket; both ends prove the same, and the communicator. */
typedef struct control_purpose {
    uint16_t traffic, index;
    uint16_t transport; /* its number, transport_all()[i] */
    bool local;         /* AF_UNIX: both ranks are on one host */
} control_purpose;

/** Keys for the bytes after a handshake on its connection, one a direction; only holders of the
 *  job's key can compute them, and each connection has others. */
typedef struct control_keys {
    unsigned char out[CONTROL_SOCKET_KEY], in[CONTROL_SOCKET_KEY];
} control_keys;

/** A data socket. */
typedef struct control_socket {
    int fd;
    control_keys keys;
} control_socket;

/** Takes a data socket: one that was dialed from here, or one that a peer dialed.
 *  @param status  RING_OK: socket->fd is a blocking socket and the taker's. Else a control_dial()
 *                 that failed, socket is NULL, fail_text() says why.
 *  @return false if the socket is not wanted: it is closed. Called by any thread, control's lock
 *          held: it must not call control, nor wait, nor take a lock under which control is
 *          called. */
typedef bool control_sink(void *context, int peer, const control_purpose *purpose,
                          ring_status status, const control_socket *socket);

/** Sets the taker of this communicator's data sockets; NULL: none. Sockets that peers have dialed
 *  before are held for a while, and given to the sink at once. */
void control_set_sink(control_world *world, control_sink *sink, void *context);

/** Opens a socket to @p peer, at any time after joining; the sinks of both ranks get it. Either
 *  rank of a pair may dial; of each purpose there is one socket, even if both dial, or repeatedly.
 *  Tries until @p deadline; the communicator's verdict ends it before, by the sink. */
ring_status control_dial(control_world *world, int peer, const control_purpose *purpose,
                         double deadline);

/* ---- For the rooms above ---------------------------------------------------------------- */

/** Messages that this rank has sent on the channel so far, without handshakes. */
typedef struct control_counts {
    uint64_t messages, bytes;
    uint64_t beats;  /* of the messages: they say no more than that this rank lives */
    int connections; /* open now */
} control_counts;
control_counts control_count(const control_world *world);

#endif
