/* SPDX-License-Identifier: Apache-2.0
 *
 * control: runs the control channel of the ranks, from joining to leaving. A joining rank sends its
 * card to rank 0; all cards are then distributed down a tree. The connections of this tree stay
 * open and carry the barriers of the start, heartbeats, verdicts, losses and goodbyes. One thread
 * per process serves all its memberships (control_thread.h); a call that waits, waits for that
 * thread.
 *
 *     joining ──▶ cards ──▶ linking ──▶ running ──▶ leaving
 *        └───────────┴─────────┴──▶ failed: the same verdict on every rank
 *
 * A start creates a membership. The communicators of a membership share its connections, listeners
 * and thread: the first one has all ranks, and control_derive() creates more of them without a
 * socket or a message. Each communicator ends by its own verdict, and the membership lives until
 * its last communicator is freed. Rank numbers in these functions are those of the communicator
 * that is passed.
 *
 * Every connection of a membership, data links included, begins with the same handshake
 * (handshake.h), which proves the job, membership, communicator, pair of ranks and purpose.
 *
 * Locks: control takes no lock of its callers. All functions may be called from any thread unless
 * their comment says otherwise.
 */
#ifndef RING_CONTROL_H
#define RING_CONTROL_H

#include "base.h"
#include "card.h"
#include "settings.h"

enum {
    CONTROL_FANOUT = 4,      /* children of a rank in the tree */
    CONTROL_SOCKET_KEY = 32, /* bytes of each key of a connection */
    CONTROL_TEXT = 488       /* bytes of a verdict's text, with the NUL */
};

/** The ranks of a communicator, and facts about them that are equal on all ranks. */
typedef struct control_world {
    uint64_t id;       /* the same on every rank; 0 for the communicator of the start */
    const void *start; /* identifies the start: equal in all its communicators on this rank */
    int rank, size;
    control_card *cards; /* [size], the same on every rank; card.rank is the rank at the start */
    settings settings;   /* rank 0's where all ranks must agree, else this rank's */
    char launcher[32];
    double deadline; /* of the start */
} control_world;

/* ---- Joining ---------------------------------------------------------------------------- */

/** Makes a unique id. It reserves a port, on which rank 0 listens when it joins; the port is
 *  released if rank 0 does not join within RING_INIT_TIMEOUT. See ring_get_unique_id(). */
ring_status control_make_id(ring_unique_id *id);

/** Joins: every rank proves its membership, and gets the cards of all ranks.
 *  @param transports  bit mask for this rank's card. @param[out] out  to be freed by
 *  control_free(). */
ring_status control_join(const settings *s, const ring_unique_id *id, int size, int rank,
                         uint32_t transports, control_world **out);
/** Joins with the rank, size and address that the launcher has put into the environment. */
ring_status control_join_env(const settings *s, uint32_t transports, control_world **out);

/** Reports to the other ranks, instead of joining, that this rank has failed with @p status and
 *  fail_text(). That takes about a second; rank 0 takes longer while ranks keep joining.
 *  @param id  NULL: it would have joined by the environment. @return @p status. */
ring_status control_refuse(const settings *s, const ring_unique_id *id, int size, int rank,
                           ring_status status);

/** Passes a barrier of the communicator of the start. Returns RING_OK when every rank has called it
 *  with @p mine RING_OK; otherwise every rank gets the verdict: the status and text of the first
 *  rank that failed. */
ring_status control_agree(control_world *world, ring_status mine);
/** Announces the failure @p mine before control_agree() does, so that peers learn of it before they
 *  see the connections break that the caller is about to close. */
void control_announce(control_world *world, ring_status mine);

/** Ends the start: from now on a rank may leave in order, and a lost rank ends only the
 *  communicators that it is in. For a derived communicator it only registers @p wake.
 *  @param wake  called when there is a verdict (at once, if there is one already), to wake sleeping
 *               callers. It runs under control's lock, so it must neither call control nor wait. */
void control_start(control_world *world, void (*wake)(void *), void *context);

/** Ends all callbacks of this communicator. The last communicator of a membership to leave says
 *  goodbye, if it was started, and closes the connections. Earlier messages are still delivered,
 *  unless a peer does not read for a second. Must not be called by the control thread. */
void control_leave(control_world *world);
/** Leaves if control_leave() was not called, and frees the communicator. */
void control_free(control_world *world);

/* ---- More communicators of one membership ------------------------------------------------ */

/** Makes a communicator of some ranks of @p of, each of which calls this with the same arguments.
 *  No message is sent. If one of the ranks is known to be lost, the communicator has a verdict at
 *  once.
 *  @param id     made by control_new_id() on one of the ranks.
 *  @param ranks  [count] ranks of @p of in their new order, this rank included. */
ring_status control_derive(control_world *of, uint64_t id, const int *ranks, int count,
                           control_world **out);
/** Returns an id that no rank of the membership returns a second time. */
uint64_t control_new_id(control_world *world);

/** Makes a communicator of the remaining ranks of @p broken, which must have a verdict (else
 *  RING_ERR_USAGE). All ranks that are neither lost nor have left must call this; a rank that has
 *  not called by @p deadline is excluded. The ranks keep their order, and every caller gets the
 * same result. RING_ERR_PEER: this rank is excluded; or a rank of this host is stopped, or half of
 * the ranks are cut off. In the last two cases it can be called again when those ranks have ended
 * or returned. */
ring_status control_shrink(control_world *broken, double deadline, control_world **out);

/* ---- Calls of ranks at different times ---------------------------------------------------- */

/** Passes a barrier with a deadline. Returns RING_OK when all ranks of the communicator have called
 *  it; RING_IN_PROGRESS on the ranks that had arrived when the earliest of their deadlines passed;
 *  or the verdict. A timeout does not end the communicator: a rank that calls later takes part in
 *  the next round. Calls from several threads of a rank count as one.
 *  @param[out] came  [size] true for the ranks that had arrived. */
ring_status control_meet(control_world *world, double deadline, bool *came);

/** An ordered list of ranks of a communicator that make a call together; equal on each of them. */
typedef struct control_list {
    const int *ranks; /* [count] of the communicator */
    int count, tag;   /* concurrent calls with the same ranks must differ in the tag */
    double deadline;
} control_list;

/** Agrees on an id with exactly the ranks of the list, all of which must call this. Returns
 *  RING_ERR_TIMEOUT on the ranks that had arrived when the earliest deadline passed, with the
 * others named in the text; RING_ERR_USAGE if another thread of this rank waits with the same list
 * and tag. A verdict of @p world ends the wait.
 *  @param[out] id  for control_derive(). */
ring_status control_agree_id(control_world *world, const control_list *list, uint64_t *id);
/** Returns RING_OK when all ranks of the list have called this with @p mine RING_OK. If a rank was
 *  lost, or could not create the communicator (@p mine and fail_text() give its reason), all ranks
 *  get an error.
 *  @param made  the communicator of that id on this rank; NULL if @p mine is an error. */
ring_status control_agree_made(control_world *world, const control_list *list, uint64_t id,
                               control_world *made, ring_status mine);

/* ---- The verdict ------------------------------------------------------------------------ */

/** @return the verdict that ended the communicator, RING_OK while there is none. Costs one atomic
 *  load. */
ring_status control_verdict(const control_world *world);
/** @return the text of the verdict, the same on every rank; "" while there is none. A lost rank is
 *  named by its number at the start. */
const char *control_text(const control_world *world);

/** Proposes this failure as the verdict, unless there is a verdict. The top of the tree accepts one
 *  of several proposals; a proposal that it does not answer within 0.2 s becomes the verdict.
 *  Returns at once.
 *  @param text  should name rank, host, call and cause; cut to CONTROL_TEXT - 1 bytes. */
void control_propose(control_world *world, ring_status status, const char *text);
/** Reports that a data link to @p peer broke. After 0.4 s it proposes that @p peer was lost, with
 *  the reason @p what, unless a verdict or another proposal names the real culprit before. Returns
 *  at once. */
void control_suspect(control_world *world, int peer, const char *what);
/** @return the verdict; RING_OK if there is none yet. The verdict is already in the kernel's
 *  send buffers for this rank's neighbours, so the caller may end its process. Overdue proposals
 * are decided in this call, so it does not depend on the control thread. */
ring_status control_answer(control_world *world);
/** Calls control_propose() and waits for the answer, for 0.2 s at most. */
void control_report(control_world *world, ring_status status, const char *text);
/** @return true if @p peer has said goodbye (left the membership in order). */
bool control_left(const control_world *world, int peer);

/* ---- Statements ------------------------------------------------------------------------- */

/** A rank's statement to all ranks of a communicator: it waits in a call, or has refused one. */
typedef struct control_statement {
    uint64_t number;           /* of the call, among collectives or among calls of the pair */
    uint64_t signature, count; /* of the call in which the rank waits; 0 if refused */
    int32_t peer;              /* of a send or recv; -1: a collective */
    int32_t root;
    int32_t sends;   /* true for a send */
    int32_t refused; /* true if the arguments were refused, see the text; else the rank waits */
    char text[CONTROL_TEXT - 40];
} control_statement;

/** Sends a statement to all ranks; returns at once. Equal statements of several ranks that wait in
 *  one collective are forwarded only once. */
void control_state(control_world *world, const control_statement *statement);

/** Receives a statement of @p rank. @p statement is valid during the call, and its text is
 *  printable. Called by the control thread under control's lock: it must not call control, nor
 *  wait. */
typedef void control_statement_sink(void *context, int rank, const control_statement *statement);
/** Sets the sink, which gets the kept statements at once; NULL removes it. */
void control_set_statement_sink(control_world *world, control_statement_sink *sink, void *context);

/* ---- Data sockets ----------------------------------------------------------------------- */

/** The purpose of a data socket. Both ends prove in the handshake that they have the same purpose
 *  and communicator. */
typedef struct control_purpose {
    uint16_t traffic, index; /* the kind of traffic, and the number of the socket in it */
    uint16_t transport;      /* i of transport_all()[i] */
    bool local;              /* AF_UNIX: both ranks are on one host */
} control_purpose;

/** The keys of a connection for the bytes after its handshake, one for each direction. Only holders
 *  of the job's key can compute them, and they differ between connections. */
typedef struct control_keys {
    unsigned char out[CONTROL_SOCKET_KEY], in[CONTROL_SOCKET_KEY];
} control_keys;

typedef struct control_socket {
    int fd;
    control_keys keys;
} control_socket;

/** Receives a data socket that this rank or a peer has dialed. May be called by any thread, under
 *  control's lock: it must not call control, nor wait, nor take a lock under which control is
 *  called.
 *  @param status  RING_OK: socket->fd is a blocking socket, now owned by the sink. Otherwise a
 *                 control_dial() has failed: socket is NULL, and fail_text() gives the reason.
 *  @return false if the socket is not wanted: control closes it. */
typedef bool control_sink(void *context, int peer, const control_purpose *purpose,
                          ring_status status, const control_socket *socket);

/** Sets the sink for this communicator's data sockets; NULL removes it. It gets at once the sockets
 *  that peers have dialed before, which are held for a while. */
void control_set_sink(control_world *world, control_sink *sink, void *context);

/** Opens a socket to @p peer, at any time after joining; the sinks of both ranks get it. Either
 *  rank of a pair may dial. There is one socket for each purpose, even if both ranks dial, or one
 *  dials repeatedly. Retries until @p deadline; if the communicator ends before, the sink is
 *  called with the verdict. */
ring_status control_dial(control_world *world, int peer, const control_purpose *purpose,
                         double deadline);

/* ---- Statistics ------------------------------------------------------------------------- */

/** The traffic that this rank has sent on the channel so far, without handshakes. */
typedef struct control_counts {
    uint64_t messages, bytes;
    uint64_t beats;  /* messages that are heartbeats */
    int connections; /* open now */
} control_counts;
control_counts control_count(const control_world *world);

#endif
