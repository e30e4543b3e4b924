/* SPDX-License-Identifier: Apache-2.0
 *
 * hand: one handshake on one socket, either side of it, as a state machine that never blocks.
 * Everything read before the other side has proved itself has a fixed size.
 *
 *     connecting side                      listening side
 *     hello                        ──▶     (magic wrong: closed)
 *     (MAC wrong: closed)          ◀──     hello, MAC of both hellos
 *     MAC of both hellos, extra    ──▶     (MAC wrong: closed)
 *     done                         ◀──     one byte: welcome
 *
 * The nonces in the hellos are new each time, so a replay proves nothing. The layout of these
 * messages is the same in all versions; version, byte order and sizes are compared after
 * both sides have proved themselves, so that only a member of the job can cause the error.
 */
#ifndef RING_BOOT_HAND_H
#define RING_BOOT_HAND_H

#include "base.h"

#include <stdio.h>

enum { HAND_KEY = 32, HAND_NONCE = 32, HAND_MAC = 32, HAND_EXTRA = 1024, HAND_SECONDS = 5 };
enum hand_purpose { HAND_JOIN = 1, HAND_LINK = 2 };

/** What this rank shows and expects. Borrowed by its handshakes. */
typedef struct hand_terms {
    unsigned char key[HAND_KEY];
    FILE *users; /* the key is no secret: owner_table(), the other side must be of our user */
    int rank, size;
} hand_terms;

typedef struct hand_hello {
    char magic[8];
    uint32_t order, version, card_bytes;
    int32_t size, rank, peer; /* peer: whom this is for */
    uint16_t purpose, lane;
    unsigned char nonce[HAND_NONCE];
} hand_hello;

_Static_assert(sizeof(hand_hello) == 68, "hellos look the same in all versions");

enum hand_state { HAND_CONNECTING, HAND_HELLO, HAND_ANSWER, HAND_PROOF, HAND_WELCOME };

typedef struct hand {
    int fd; /* owned until hand_step() says RING_OK; then the caller's */
    const hand_terms *terms;
    enum hand_state state;
    hand_hello caller, listener;
    unsigned char in[sizeof(hand_hello) + HAND_MAC];
    size_t got;
    const void *extra; /* at most HAND_EXTRA bytes, sent right behind the proof; borrowed */
    size_t extra_bytes;
    double expires;    /* until the other side has proved itself */
} hand;

/** A hello of this program for @p peer. */
hand_hello hand_hello_to(const hand_terms *terms, int peer, enum hand_purpose purpose, int lane);

/** The side that connects; @p fd is connected or connecting. */
void hand_call(hand *h, int fd, const hand_terms *terms, const hand_hello *hello,
               const void *extra, size_t extra_bytes);
/** The side that listens; @p fd was just accepted. */
void hand_answer(hand *h, int fd, const hand_terms *terms);

/** Goes on as far as it can.
 *  @return RING_OK: the socket is h->fd, h->caller and h->listener are true;
 *          RING_IN_PROGRESS: wait for hand_events();
 *          RING_ERR_CONFIG: a member of the job, but another version, byte order or size;
 *          else this socket is of no use: RING_ERR_AUTH, _PEER, _TIMEOUT, _SYSTEM.
 *  On errors the socket is closed. */
ring_status hand_step(hand *h);
short hand_events(const hand *h);
void hand_drop(hand *h);

/** The kernel's table of connections, to be kept: when a member has to be looked up, strangers
 *  may have all descriptors. NULL: it cannot be read. */
FILE *owner_table(void);
/** @return RING_OK if the process at the other end is of our user. AF_UNIX is always looked
 *  at, TCP over 127.0.0.1 only with a @p table. */
ring_status owner_check(int fd, FILE *table);

#endif
