/* SPDX-License-Identifier: Apache-2.0
 *
 * handshake: opens every connection between ranks, for control or data, and proves to each side
 * that its peer belongs to the job. It is a state machine that never blocks, and implements both
 * sides. Every message has a fixed size.
 *
 *     dialer                          acceptor
 *     hello                   ──▶     (magic wrong: closed)
 *     (MAC wrong: closed)     ◀──     hello, MAC of both hellos
 *     MAC of both hellos      ──▶     (MAC wrong: closed)
 *     done                    ◀──     one byte: welcome
 *
 * The MACs are computed with the job's key and cover all fields of the hellos: membership,
 * communicator, pair, traffic and so on. The nonces are new each time, so a replay proves nothing.
 * Half of a dialer's nonce is a MAC, from which an acceptor recognizes before its answer that the
 * peer has the key, and so can prefer it to strangers. The layout of these messages is the same in
 * all versions. Version, byte order and sizes are compared only after both proofs, so that only
 * members of the job can cause such an error.
 */
#ifndef RING_CONTROL_HANDSHAKE_H
#define RING_CONTROL_HANDSHAKE_H

#include "control.h"
#include "credential.h"

#include <stdio.h>

enum { HANDSHAKE_NONCE = 32, HANDSHAKE_MAC = 32, HANDSHAKE_SESSION = 16, HANDSHAKE_SECONDS = 5 };
enum { HANDSHAKE_MAKER = -1 }; /* in place of a rank: the maker of the id, see id_maker.h */
/** A connection of a joining rank to rank 0 or to the maker of the id, an edge of the tree, a data
 *  socket, or a connection by which rank 0 tells the maker of the id its address. */
enum handshake_kind { HANDSHAKE_JOIN = 1, HANDSHAKE_CONTROL, HANDSHAKE_LINK, HANDSHAKE_REGISTER };

/** The purpose of a connection, which must be equal at both ends. Only data sockets have a kind of
 *  traffic, an index and a transport (control_purpose); for others these are 0. */
typedef struct handshake_purpose {
    uint64_t communicator; /* its id */
    uint16_t kind;         /* an enum handshake_kind */
    uint16_t traffic, index, transport;
} handshake_purpose;

/** The facts that the handshakes of this rank send and expect. They must outlive the handshakes. */
typedef struct handshake_terms {
    unsigned char key[CREDENTIAL_KEY];
    unsigned char session[HANDSHAKE_SESSION]; /* identifies the membership within the job; rank 0
                                                 draws it, and the others get it with its proof */
    FILE *users; /* peer_table() if the key is public, so that the user of each peer is checked */
    int rank, size;
    unsigned char rank_0[ADDRESS_PACKED]; /* at rank 0 and at the maker: rank 0's address */
} handshake_terms;

typedef struct handshake_hello {
    char magic[8];
    handshake_purpose purpose;
    uint32_t order;           /* a constant that shows the sender's byte order */
    uint32_t version;         /* RING_VERSION_CODE */
    uint32_t card_bytes;      /* the size of a card */
    int32_t size, rank, peer; /* the sender's size and rank, and the rank that it expects as peer */
    unsigned char session[HANDSHAKE_SESSION];
    unsigned char nonce[HANDSHAKE_NONCE]; /* half of it random, half a MAC of all bytes before */
} handshake_hello;

_Static_assert(sizeof(handshake_hello) == 96, "hellos have the same layout in all versions");

/** The message or event that a side waits for. */
enum handshake_state {
    HANDSHAKE_CONNECTING, /* the dialer's socket is not connected yet */
    HANDSHAKE_HELLO,      /* the acceptor waits for the dialer's hello */
    HANDSHAKE_ANSWER,     /* the dialer waits for the acceptor's hello and proof */
    HANDSHAKE_PROOF,      /* the acceptor waits for the dialer's proof */
    HANDSHAKE_WELCOME,    /* the dialer waits for the last byte */
    HANDSHAKE_REDIRECT    /* the dialer waits for rank 0's address */
};

typedef struct handshake {
    int fd; /* borrowed */
    const handshake_terms *terms;
    enum handshake_state state;
    handshake_hello dialer, acceptor;                          /* the hellos of both sides */
    unsigned char in[sizeof(handshake_hello) + HANDSHAKE_MAC]; /* the message that is arriving */
    size_t got;                                                /* bytes of it that have arrived */
    net_address rank_0; /* its address, by a HANDSHAKE_REGISTER or a redirect; length 0: none */
    int error;          /* of connecting, as errno; 0: none */
    bool shows_key; /* at the acceptor: the MAC in the dialer's hello is right. The hello may be a
                       stranger's copy of a member's, so this is not a proof */
    double started; /* the time at which the handshake began */
    double expires; /* the time by which the peer must have proved its membership */
} handshake;

/** @return a new hello of this rank for @p peer. */
handshake_hello handshake_hello_to(const handshake_terms *terms, int peer,
                                   const handshake_purpose *purpose);

/** Begins the dialer's side; @p fd is connected or connecting.
 *  @param patience  s: the time in which the peer must prove its membership. */
void handshake_dial(handshake *h, int fd, const handshake_terms *terms,
                    const handshake_hello *hello, double patience);
/** Begins the acceptor's side; @p fd was just accepted. */
void handshake_accept(handshake *h, int fd, const handshake_terms *terms);

/** Advances the handshake as far as possible.
 *  @return RING_OK: the peer has proved its membership, and at the dialer also admitted this rank,
 *          or redirected it to h->rank_0;
 *          RING_IN_PROGRESS: the handshake waits for handshake_events();
 *          RING_ERR_CONFIG: the peer is a member of the job with another version, byte order or
 *          size; RING_ERR_ABORTED: the peer declines this connection for good;
 *          any other status: the socket cannot be used (RING_ERR_AUTH, _PEER, _TIMEOUT, _SYSTEM).
 */
ring_status handshake_step(handshake *h);
/** @return the rank of the peer. */
int handshake_peer(const handshake *h);
/** Computes the connection's keys, after handshake_step() has returned RING_OK. */
void handshake_derive(const handshake *h, control_keys *keys);
/** Sends the acceptor's last message, the welcome, after handshake_step() has returned RING_OK. */
ring_status handshake_welcome(handshake *h);
/** Sends rank 0's address instead, at which the dialer then joins. */
void handshake_redirect(handshake *h);
/** Declines the connection instead, because this rank has left the communicator. */
void handshake_decline(handshake *h);
/** @return the events that the handshake waits for: EPOLLIN or EPOLLOUT, which equal POLLIN and
 *  POLLOUT. */
uint32_t handshake_events(const handshake *h);

#endif
