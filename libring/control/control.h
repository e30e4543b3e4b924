/* SPDX-License-Identifier: Apache-2.0
 *
 * control: runs the control channel of the ranks, from joining to leaving. A joining rank sends its
 * card to rank 0; all cards are then distributed down a tree. The connections of this tree stay
 * open and carry the barriers of the start, heartbeats, verdicts, losses and goodbyes. One thread
 * per process, the control thread (control_thread.h), serves all memberships of the process.
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
    const void *start; /* identifies the start: equal in all communicators of one membership */
    int rank, size;
    control_card *cards; /* [size], the same on every rank; card.rank is the rank at the start */
    settings settings;   /* this rank's; those that must be equal on all ranks are rank 0's */
    char launcher[32];
    double deadline; /* of the start */
} control_world;

/* ---- Joining ---------------------------------------------------------------------------- */

/** Makes a unique id. It reserves a port, on which rank 0 listens when it joins; the port is
 *  released if rank 0 does not join within RING_INIT_TIMEOUT. See ring_get_unique_id(). */
ring_status control_make_id(const settings *s, ring_unique_id *id);
/** As control_make_id(), but rank 0 may join in any process while this process lives: the control
 *  thread serves the id (id_maker.h). */
ring_status control_make_served_id(const settings *s, ring_unique_id *id);

/** Lets other threads abort a start. Zero it before the start; it must outlive the start. */
typedef struct control_stop {
    control_world *world; /* the start's, while it exists; guarded by control's lock, as is: */
    char reason[256];     /* why the start is to be aborted; "": it is not */
} control_stop;

/** Joins: every rank proves its membership, and gets the cards of all ranks.
 *  @param transports  bit mask for this rank's card. @param stop  may be NULL.
 *  @param[out] out  to be freed by control_free(). */
ring_status control_join(const settings *s, const ring_unique_id *id, int size, int rank,
                         uint32_t transports, control_stop *stop, control_world **out);
/** Aborts the start at this rank, and at all ranks that have joined: its verdict is
 *  RING_ERR_ABORTED. Returns at once. If the start has succeeded meanwhile, ends its communicator,
 *  which must not be freed yet. @param reason  must not be "". */
void control_stop_start(control_stop *stop, const char *reason);
/** Joins with the rank, size and address that the launcher has put into the environment. */
ring_status control_join_env(const settings *s, uint32_t transports, control_world **out);

/** Reports to the other ranks that this rank cannot join, because it has failed with @p status and
 *  fail_text(). That takes about a second, and up to 5 s at rank 0 while ranks keep connecting.
 *  @param id  NULL if the ranks join by the environment. @return @p status. */
ring_status control_refuse(const settings *s, const ring_unique_id *id, int size, int rank,
                           ring_status status);

/** Passes a barrier of the communicator of the start. Returns RING_OK when every rank has called it
 *  with @p mine RING_OK. If a rank calls it with an error, or is lost, every rank gets the verdict:
 *  the status and text of the first failure. */
ring_status control_agree(control_world *world, ring_status mine);
/** Announces to all ranks that this rank has failed with @p mine and fail_text(); RING_OK does
 *  nothing. The caller does this before it closes its links, so that peers learn of the failure
 *  before their links break, and then still calls control_agree(). */
void control_announce(control_world *world, ring_status mine);

/** Ends the start: after this a rank may leave in order, and a lost rank ends only the
 * communicators that it is in. For a derived communicator it only registers @p wake.
 *  @param wake  called when there is a verdict, even if there is one already, to wake sleeping
 *               callers. It runs under control's lock, so it must neither call control nor wait. */
void control_start(control_world *world, void (*wake)(void *), void *context);

/** Leaves the communicator; its callbacks are not called any more. When this rank leaves the last
 *  communicator of a membership, it says goodbye if control_start() was called, and closes the
 *  connections. Earlier messages are still delivered to each peer that reads them within a second.
 *  Must not be called by the control thread. */
void control_leave(control_world *world);
/** Frees the communicator, after control_leave() if that was not called. @p world may be NULL. */
void control_free(control_world *world);

/** As control_leave(), in a process that exits: returns at once, and stops no thread and closes no
 *  connection. @return false if control's lock was not free by @p deadline. */
bool control_leave_at_exit(control_world *world, double deadline);
/** Waits until the goodbye of control_leave_at_exit() has arrived, or @p deadline. */
void control_await_goodbye(control_world *world, double deadline);

/* ---- More communicators of one membership ------------------------------------------------ */

/** Makes a communicator of some ranks of @p of, each of which calls this with the same arguments.
 *  No message is sent. If one of the ranks is known to be lost, the communicator has a verdict at
 *  once.
 *  @param id     made by control_new_id() on one of the ranks.
 *  @param ranks  [count] ranks of @p of in their new order, this rank included. */
ring_status control_derive(control_world *of, uint64_t id, const int *ranks, int count,
                           control_world **out);
/** @return an id that no other call returns on any rank of the membership. */
uint64_t control_new_id(control_world *world);

/** Makes a communicator of the remaining ranks of @p broken, in their old order. All ranks that are
 *  neither lost nor have left must call this, and a rank that has not called by @p deadline is
 *  excluded. Every caller gets the same result.
 *  @return RING_OK; RING_ERR_USAGE if @p broken has no verdict; RING_ERR_TIMEOUT if the ranks did
 *  not agree in time; RING_ERR_PEER if this rank is excluded. RING_ERR_PEER also means that a rank
 *  on the host of a remaining rank is stopped, or that half of the ranks are cut off; then the
 *  function can be called again when those ranks have ended or are connected again. */
ring_status control_shrink(control_world *broken, double deadline, control_world **out);

/* ---- Calls of ranks at different times ---------------------------------------------------- */

/** Passes a barrier with a deadline. Returns RING_OK when all ranks of the communicator have called
 *  it. When the earliest deadline of the callers passes before that, it returns RING_IN_PROGRESS to
 *  them; the communicator does not end, and a rank that calls later takes part in the next round.
 *  Also returns the verdict if there is one. Calls from several threads of a rank count as one.
 *  @param[out] came  [size] true for the ranks that had arrived. */
ring_status control_meet(control_world *world, double deadline, bool *came);

/** An ordered list of ranks of a communicator that make a call together. Each of them must pass the
 *  same ranks and tag. */
typedef struct control_list {
    const int *ranks; /* [count] ranks of the communicator */
    int count, tag;   /* concurrent calls with the same ranks must have different tags */
    double deadline;  /* may differ between ranks; the earliest one counts */
    bool despite_end; /* the communicator may have ended, but all ranks of the list are there */
} control_list;

/** Agrees on the id of a new communicator with the ranks of the list, all of which must call this.
 *  A verdict of @p world ends the wait, or, with list->despite_end, the loss or leave of a listed
 *  rank.
 *  @param[out] id  equal on all ranks of the list, for control_derive().
 *  @return RING_OK; RING_ERR_TIMEOUT if ranks had not called by the earliest deadline, which the
 * text names; RING_ERR_USAGE if another thread of this rank waits with the same list and tag; or
 * the verdict. */
ring_status control_agree_id(control_world *world, const control_list *list, uint64_t *id);
/** Waits until all ranks of the list have created the communicator @p id. Returns RING_OK when all
 * of them have called this with @p mine RING_OK. If a rank was lost, or calls this with an error,
 * for which fail_text() has the reason, all ranks get an error.
 *  @param made  the communicator on this rank; NULL if @p mine is an error. */
ring_status control_agree_made(control_world *world, const control_list *list, uint64_t id,
                               control_world *made, ring_status mine);

/* ---- The verdict ------------------------------------------------------------------------ */

/** @return the verdict that ended the communicator; RING_OK while there is none. Costs one atomic
 *  load. */
ring_status control_verdict(const control_world *world);
/** @return the text of the verdict, the same on every rank; "" while there is no verdict. It names
 * a lost rank by its number at the start. */
const char *control_text(const control_world *world);

/** Proposes this failure as the verdict, unless there is a verdict. Of several proposals the rank
 * at the top of the tree accepts the first. If it does not answer within 0.2 s, this rank makes its
 *  proposal the verdict itself. Returns at once.
 *  @param text  should name rank, host, call and cause; cut to CONTROL_TEXT - 1 bytes. */
void control_propose(control_world *world, ring_status status, const char *text);
/** Reports that a data link to @p peer broke, with the reason @p what. If there is no verdict
 * within 0.4 s, control proposes that @p peer was lost. The delay gives the rank that failed first
 * time to report the cause. Returns at once. */
void control_suspect(control_world *world, int peer, const char *what);
/** @return the verdict; RING_OK if there is none yet. A verdict has already been sent to this
 * rank's neighbours, so the caller may end its process. If a proposal of this rank is overdue, this
 * call makes it the verdict, so that the caller does not depend on the control thread. */
ring_status control_answer(control_world *world);
/** Calls control_propose() and waits for the verdict, which takes at most about 0.2 s. */
void control_report(control_world *world, ring_status status, const char *text);
/** @return true if @p peer has said goodbye (left the membership in order). */
bool control_left(const control_world *world, int peer);

/* ---- Statements ------------------------------------------------------------------------- */

/** A rank's statement to all ranks of a communicator about a call: the rank waits in the call, or
 * has rejected it because of its arguments. */
typedef struct control_statement {
    uint64_t number;           /* of the call, among collectives or among the calls of a pair */
    uint64_t signature, count; /* of a call in which the rank waits; 0 if the call was rejected */
    int32_t peer;              /* of a send or receive; -1: the call is a collective */
    int32_t root;
    int32_t sends;                /* 1: the call is a send; 0: any other call */
    int32_t refused;              /* 1: the call was rejected; 0: the rank waits in it */
    char text[CONTROL_TEXT - 40]; /* the reason, if the call was rejected */
} control_statement;

/** Sends a statement to all ranks; returns at once. If several ranks wait in the same collective,
 * the control channel forwards only the first of their equal statements. */
void control_state(control_world *world, const control_statement *statement);

/** Receives a statement of another rank. @p statement is valid during the call, and its text is
 *  printable. It is called under control's lock, so it must neither call control nor wait. */
typedef void control_statement_sink(void *context, int rank, const control_statement *statement);
/** Sets the sink and passes the kept statements to it at once; NULL removes the sink. */
void control_set_statement_sink(control_world *world, control_statement_sink *sink, void *context);

/* ---- Data sockets ----------------------------------------------------------------------- */

/** The purpose of a data socket. Both ends prove in the handshake that they have the same purpose
 *  and communicator. */
typedef struct control_purpose {
    uint16_t traffic, index; /* the kind of traffic, and the number of the socket for this kind */
    uint16_t transport;      /* the transport is transport_all()[transport] */
    bool local;              /* it is an AF_UNIX socket, since both ranks are on one host */
} control_purpose;

/** The keys of a connection for the bytes after its handshake, one for each direction. Only members
 *  of the job can compute them, and no two connections have the same keys. */
typedef struct control_keys {
    unsigned char out[CONTROL_SOCKET_KEY], in[CONTROL_SOCKET_KEY];
} control_keys;

typedef struct control_socket {
    int fd;
    control_keys keys;
} control_socket;

/** Receives a data socket that this rank or a peer has dialed. Any thread may call it, under
 *  control's lock, so it must not call control, wait, or take a lock under which control is called.
 *  @param status  RING_OK: socket->fd is a blocking socket, now owned by the sink. Otherwise a
 *                 control_dial() has failed: socket is NULL, and fail_text() gives the reason.
 *  @return false if the socket is not wanted: control closes it. */
typedef bool control_sink(void *context, int peer, const control_purpose *purpose,
                          ring_status status, const control_socket *socket);

/** Sets the sink for this communicator's data sockets; NULL removes it. Sockets that peers have
 *  dialed before are held for RING_TIMEOUT seconds, and are passed to the sink at once. */
void control_set_sink(control_world *world, control_sink *sink, void *context);

/** Opens a socket to @p peer, at any time after joining. Returns at once; the sinks of both ranks
 * get the socket later. Either rank of a pair may dial, and a pair has one socket for each purpose,
 * even if both ranks dial or one dials repeatedly. Control retries until @p deadline. If the
 * communicator ends before that, the sink is called with the verdict. */
ring_status control_dial(control_world *world, int peer, const control_purpose *purpose,
                         double deadline);

/* ---- Statistics ------------------------------------------------------------------------- */

/** The traffic that this rank has sent on its control connections so far, without handshakes. */
typedef struct control_counts {
    uint64_t messages, bytes;
    uint64_t beats;  /* messages that are heartbeats */
    int connections; /* open now */
} control_counts;
control_counts control_count(const control_world *world);

#endif
