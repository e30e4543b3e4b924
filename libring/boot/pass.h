/* SPDX-License-Identifier: Apache-2.0
 *
 * pass: what a rank must know to join: the key that proves membership, and where rank 0 may
 * listen. It comes from a unique id, or from MASTER_ADDR, MASTER_PORT and the secret.
 */
#ifndef RING_BOOT_PASS_H
#define RING_BOOT_PASS_H

#include "address.h"
#include "boot.h"
#include "hand.h"

enum { PASS_PLACES = 32, PASS_AGENT_PORTS = 16 };

typedef struct pass {
    unsigned char key[HAND_KEY];
    bool check_uid;
    boot_address at[PASS_PLACES]; /* in the order to be tried */
    size_t places;
} pass;

/** Reads the secret and resolves the address. */
ring_status pass_from_launch(const boot_launch *launch, const settings *s, double deadline,
                             pass *out);
/** Rank 0: listens at the first place that is free; on success that is p->at[0]. RING_ADDR or
 *  RING_SOCKET_IFNAME stand in where MASTER_ADDR is no address of this host. */
ring_status pass_listen(pass *p, const boot_launch *launch, const settings *s, double deadline,
                        int *fd);

ring_status pass_from_id(const ring_unique_id *id, pass *out);
/** A new id with a random key for @p at. */
void pass_make_id(const boot_address *at, ring_unique_id *id);

/** The hash of RING_SECRET_FD's or RING_SECRET_FILE's content; *found is false if neither
 *  is set. */
ring_status secret_read(const settings *s, unsigned char hash[HAND_KEY], bool *found);

#endif
