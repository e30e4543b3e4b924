/* SPDX-License-Identifier: Apache-2.0
 *
 * handshake: the beginning of every connection between ranks, control and data alike, either side
 * of it, as a state machine that never blocks. Every message has a fixed size.
 *
 *     dialer                          acceptor
 *     hello                   ──▶     (magic wrong: closed)
 *     (MAC wrong: closed)     ◀──     hello, MAC of both hellos
 *     MAC of both hellos      ──▶     (MAC wrong: closed)
 *     done                    ◀──     one byte: welcome
 *
 * The MACs are by the job's key, and cover all fields of the hellos: membership, communicator,
 * pair, traffic and the rest. The nonces are new each time, so a replay proves nothing; half of a
 * nonce is a MAC, by which an acceptor prefers peers with the key before any answer. The layout of
 * these messages is the same in all versions; version, byte order and sizes are compared after both
 * sides have proved themselves, so that only a member of the job can cause the error.
 */
#ifndef RING_CONTROL_HANDSHAKE_H
#define RING_CONTROL_HANDSHAKE_H

#include "control.h"
#include "credential.h"

#include <stdio.h>

enum { HANDSHAKE_NONCE = 32, HANDSHAKE_MAC = 32, HANDSHAKE_SESSION = 16, HANDSHAKE_SECONDS = 5 };
enum handshake_kind { HANDSHAKE_JOIN = 1, HANDSHAKE_CONTROL, HANDSHAKE_LINK };

/** The purpose of a connection. Of a link also which one: two ends with different purposes do not
 *  connect. */
typedef struct handshake_purpose {
    uint64_t communicator; /* its id */
    uint16_t kind, traffic, index, transport;
} handshake_purpose;

/** This rank's facts for handshakes, and its expectations. Borrowed by them. */
typedef struct handshake_terms {
    unsigned char key[CREDENTIAL_KEY];
    unsigned char session[HANDSHAKE_SESSION]; /* which membership of the job; rank 0 draws it, and
                                                 joining ranks learn it with rank 0's proof */
    FILE *users; /* not NULL: the key is no secret, so the peer must be of our user
                    (peer_table()) */
    int rank, size;
} handshake_terms;

typedef struct handshake_hello {
    char magic[8];
    handshake_purpose purpose;
    uint32_t order, version, card_bytes;
    int32_t size, rank, peer; /* peer: the rank that is dialed */
    unsigned char session[HANDSHAKE_SESSION];
    unsigned char nonce[HANDSHAKE_NONCE]; /* half of it random, half a MAC of all before */
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
    bool shows_key; /* at the acceptor: the dialer's hello has the MAC of the key, or is a copy of
                       one that has */
    double started, expires; /* for the other side's proof */
} handshake;

/** A hello of this rank for @p peer. */
handshake_hello handshake_hello_to(const handshake_terms *terms, int peer,
                                   const handshake_purpose *purpose);

/** The side that dials; @p fd is connected or connecting. */
void handshake_dial(handshake *h, int fd, const handshake_terms *terms,
                    const handshake_hello *hello, double patience);
/** The side that accepts; @p fd was just accepted. */
void handshake_accept(handshake *h, int fd, const handshake_terms *terms);

/** Advances it as far as possible.
 *  @return RING_OK: h->dialer and h->acceptor are true; RING_IN_PROGRESS;
 *          RING_ERR_CONFIG: a member of the job, but another version, byte order or size;
 *          RING_ERR_ABORTED: declined, and so will be the next one;
 *          else this socket is of no use: RING_ERR_AUTH, _PEER, _TIMEOUT, _SYSTEM. */
ring_status handshake_step(handshake *h);
/** @return the rank of the other side. */
int handshake_peer(const handshake *h);
/** The connection's keys, after RING_OK. */
void handshake_derive(const handshake *h, control_keys *keys);
/** The acceptor's last message, after RING_OK: the dialer is done when it arrives. */
ring_status handshake_welcome(handshake *h);
/** Instead of it: this rank has left the communicator. */
void handshake_decline(handshake *h);
/** The events that it waits for, for epoll and poll alike. */
uint32_t handshake_events(const handshake *h);

#endif
