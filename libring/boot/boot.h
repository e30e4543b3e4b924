/* SPDX-License-Identifier: Apache-2.0
 *
 * boot: from "I am rank r of n" to authenticated sockets to every peer, and nothing for
 * strangers. Star to rank 0 for the exchange of cards (who is where), then one socket a
 * (peer, lane); the star stays as the control connections that health beats over.
 *
 * Handshake (fixed sizes, before any variable-length read): the connecting side says who it
 * is and a nonce; the listener answers with its nonce and a MAC; the connecting side proves
 * itself with a MAC. MAC = HMAC-SHA-256 by the key of the unique id over version, byte
 * order, job, purpose, both ranks, and both nonces.
 */
#ifndef RING_BOOT_H
#define RING_BOOT_H

#include "base.h"
#include "settings.h"

enum { BOOT_NAME_MAX = 64 };

/** What each rank tells the others. Fixed size, plain data. */
typedef struct boot_card {
    int32_t rank;
    int32_t pid;
    uint32_t uid;
    unsigned char host[16];        /* hash of boot id and network namespace: same host   */
    unsigned char process[16];     /* hash of host, pid and start: same address space    */
    char hostname[BOOT_NAME_MAX];
    uint32_t transports;           /* bit i: transport_all()[i] allowed and usable here   */
    unsigned char address[20];     /* where its TCP peers connect: family, port, address  */
    char unix_name[BOOT_NAME_MAX]; /* abstract socket of its local peers                  */
} boot_card;

typedef struct boot_world {
    int rank, size;
    boot_card *cards;         /* [size], the same on every rank                          */
    settings settings;        /* rank 0's where all must agree, else this rank's          */
    int *control;             /* rank 0: [size], control[0] = -1; others: [1], to rank 0  */
    char launcher[32];
    struct boot_doors *doors; /* listeners of this rank until boot_connect()              */
    double deadline;          /* end of init                                             */
    bool announced;           /* boot_announce() has been called                         */
} boot_world;

/** Makes a unique id and its listener. See ring_get_unique_id(). */
ring_status boot_make_id(ring_unique_id *id);

/** Rendezvous: gathers and hands out the cards, proving everybody.
 *  @param transports  bit mask for this rank's card. @param[out] out  boot_free() it. */
ring_status boot_join(const ring_unique_id *id, int size, int rank, uint32_t transports,
                      boot_world **out);
/** The same from the environment. */
ring_status boot_join_env(uint32_t transports, boot_world **out);

/** One authenticated socket to every other rank for each lane. All ranks call it, once; no
 *  deadlock. When one rank fails, all do, with its text; then only boot_free() is left to do.
 *  @param by_unix  [size] true where the pair shall use AF_UNIX (same host).
 *  @param[out] fds the caller's arrays: fds[lane][rank], blocking sockets, -1 for this rank
 *                  (on failure for all). */
ring_status boot_connect(boot_world *world, const bool *by_unix, int lanes, int **fds);

/** A barrier over the control connections: RING_OK when every rank has called it with
 *  @p mine RING_OK; else the first failing rank's error text on every rank. */
ring_status boot_agree(boot_world *world, ring_status mine);

/** Ahead of boot_agree() with the same failure: tells it to rank 0 (which has the last word
 *  itself), so that the reason comes before the effects of what the caller closes now. */
void boot_announce(boot_world *world, ring_status mine);

void boot_free(boot_world *world);

/** Launch found in the environment. */
typedef struct boot_launch {
    int rank, size, local_rank; /* local_rank -1: unknown                    */
    char launcher[32];          /* "ringrun", "torchrun", "Open MPI", "none" … */
    char address[256];          /* of rank 0, "" if to be found another way   */
    int port;
    bool agent_holds_port;      /* torchrun: never bind it                    */
    int local_size;             /* ranks on this host, 0: unknown             */
} boot_launch;
/** @return RING_OK; RING_ERR_CONFIG for contradictions, with the variables named. */
ring_status boot_detect(boot_launch *launch);

#endif
