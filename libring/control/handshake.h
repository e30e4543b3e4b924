/* SPDX-License-Identifier: Apache-2.0
 *
 * handshake: opens every connection between ranks, control or data, and proves to both sides that
 * the other one belongs to the job. It is a state machine for either side that never blocks. Every
 * message has a fixed size.
 *
 *     dialer                          acceptor
 *     hello                   ──▶     (magic wrong: closed)
 *     (MAC wrong: closed)     ◀──     hello, MAC of both hellos
 *     MAC of both hellos      ──▶     (MAC wrong: closed)
 *     done                    ◀──     one byte: welcome
 *
 * The MACs are computed with the job's key and cover all fields of the hellos: membership,
 * communicator, pair, traffic and so on. The nonces are new each time, so a replay proves nothing.
 * Half of a dialer's nonce is a MAC, by which an acceptor can prefer peers that have the key before
 * it answers. The layout of these messages is the same in all versions. Version, byte order and
 * sizes are compared only after both proofs, so that only members of the job can cause an error.
 */
#ifndef RING_CONTROL_HANDSHAKE_H
#define RING_CONTROL_HANDSHAKE_H

#include "control.h"
#include "credential.h"

#include <stdio.h>

enum { HANDSHAKE_NONCE = 32, HANDSHAKE_MAC = 32, HANDSHAKE_SESSION = 16, HANDSHAKE_SECONDS = 5 };
enum handshake_kind { HANDSHAKE_JOIN = 1, HANDSHAKE_CONTROL, HANDSHAKE_LINK };

/** The purpose of a connection, which must be equal at both ends. Links also have the kind of
 *  traffic, an index and the transport. */
typedef struct handshake_purpose {
    uint64_t communicator; /* its id */
    uint16_t kind, traffic, index, transport;
} handshake_purpose;

/** The facts about this rank that its handshakes send and expect; they borrow it. */
typedef struct handshake_terms {
    unsigned char key[CREDENTIAL_KEY];
    unsigned char session[HANDSHAKE_SESSION]; /* identifies the membership within the job; rank 0
                                                 draws it, and the others get it with its proof */
    FILE *users; /* peer_table() if the key is public, so that peers must be of our user */
    int rank, size;
} handshake_terms;

typedef struct handshake_hello {
    char magic[8];
    handshake_purpose purpose;
    uint32_t order, version, card_bytes;
    int32_t size, rank, peer; /* peer: the rank that is dialed */
    unsigned char session[HANDSHAKE_SESSION];
    unsigned char nonce[HANDSHAKE_NONCE]; /* half of it random, half a MAC of all bytes before */
} handshake_hello;

_Static_assert(sizeof(handshake_hello) == 96, "hellos look the same in all versions");

enum handshake_state {
    HANDSHAKE_CONNECTING,
    HANDSHAKE_HELLO,
    HANDSHAKE_ANSWER,
    HANDSHAKE_PROOF,
    HANDSHAKE_WELCOME
};

typedef struct handshake {
    int fd; /* borrowed */
    const handshake_terms *terms;
    enum handshake_state state;
    handshake_hello dialer, acceptor;
    unsigned char in[sizeof(handshake_hello) + HANDSHAKE_MAC];
    size_t got;
    bool shows_key; /* at the acceptor: the dialer's hello has a MAC by the key, or is a copy of
                       one that has */
    double started, expires; /* for the other side's proof */
} handshake;

/** @return a new hello of this rank for @p peer. */
handshake_hello handshake_hello_to(const handshake_terms *terms, int peer,
                                   const handshake_purpose *purpose);

/** Begins the dialing side; @p fd is connected or connecting. */
void handshake_dial(handshake *h, int fd, const handshake_terms *terms,
                    const handshake_hello *hello, double patience);
/** Begins the accepting side; @p fd was just accepted. */
void handshake_accept(handshake *h, int fd, const handshake_terms *terms);

/** Advances the handshake as far as possible.
 *  @return RING_OK: both hellos are proved; RING_IN_PROGRESS: it waits for handshake_events();
 *          RING_ERR_CONFIG: the peer is a member of the job with another version, byte order or
 *          size; RING_ERR_ABORTED: the peer declined, and always will; otherwise the socket cannot
 *          be used: RING_ERR_AUTH, _PEER, _TIMEOUT, _SYSTEM. */
ring_status handshake_step(handshake *h);
/** @return the rank of the other side. */
int handshake_peer(const handshake *h);
/** Computes the connection's keys, after RING_OK. */
void handshake_derive(const handshake *h, control_keys *keys);
/** Sends the acceptor's last message, after RING_OK; the dialer has finished when it arrives. */
ring_status handshake_welcome(handshake *h);
/** Sends, instead of the welcome, that this rank has left the communicator. */
void handshake_decline(handshake *h);
/** @return the events that the handshake waits for; the values suit both epoll and poll. */
uint32_t handshake_events(const handshake *h);

#endif
