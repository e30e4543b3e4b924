/* SPDX-License-Identifier: Apache-2.0
 *
 * doorman: a listener that lets in only who proves membership. Strangers cost at most
 * DOORMAN_GUESTS sockets of fixed memory, each for a few seconds; when all places are taken, or
 * this process's descriptors, the oldest guest has to go, so nobody can keep the members out.
 */
#ifndef RING_BOOT_DOORMAN_H
#define RING_BOOT_DOORMAN_H

#include "address.h"
#include "hand.h"
#include "waits.h"

enum { DOORMAN_GUESTS = 64 };

typedef struct guest {
    hand hand;
    boot_address from;
} guest;

typedef struct doorman {
    int listener; /* owned; -1: closed */
    enum hand_purpose purpose;
    const hand_terms *terms;
    guest guests[DOORMAN_GUESTS]; /* oldest first */
    size_t count;
    size_t room;   /* guests at most: fewer since descriptors ran out */
    double rest;   /* accept() failed: not again before that moment */
    double warned; /* when a refusal was logged last, 0: never */
} doorman;

void doorman_open(doorman *d, int listener, enum hand_purpose purpose, const hand_terms *terms);

/** Takes in and questions whoever is there, without blocking.
 *  @param[out] fd, hello  of a member whose welcome was sent; fd is the caller's then.
 *  @return RING_OK for a member (call again), RING_IN_PROGRESS for none now, RING_ERR_CONFIG
 *          if a member cannot take part, RING_ERR_SYSTEM if no descriptor is free and no guest
 *          here has one. */
ring_status doorman_step(doorman *d, int *fd, hand_hello *hello);

/** Sends the oldest guest away and keeps his place free: descriptors are needed elsewhere.
 *  @return false if there is none. */
bool doorman_yield(doorman *d);

/** Adds what doorman_step() waits for. */
ring_status doorman_wait(const doorman *d, waits *w);

void doorman_close(doorman *d);

#endif
