/* SPDX-License-Identifier: Apache-2.0
 * puppet: a rank that the test plays by hand: it proves itself, and says what it likes. */
#ifndef TEST_PUPPET_H
#define TEST_PUPPET_H

#include "control_message.h"
#include "handshake.h"

typedef struct puppet {
    int fd;
    handshake_terms terms;
    handshake_hello hello; /* may be changed before puppet_prove() */
    handshake handshake;
    control_keys keys;
    uint64_t said, heard; /* messages */
} puppet;

/** Connects to where @p id leads, as @p rank of @p size. */
ring_status puppet_dial(puppet *p, const ring_unique_id *id, int rank, int size);
/** The whole handshake; closes the socket if it fails. */
ring_status puppet_prove(puppet *p);
/** Brings a card that names @p hostname and @p pid. */
ring_status puppet_bring_card(puppet *p, const char *hostname, int pid);
ring_status puppet_say(puppet *p, const control_message *message);
/** The message as puppet_say() would send it next. */
control_sealed puppet_seal(puppet *p, const control_message *message);
/** The next message that is no beat. */
ring_status puppet_hear(puppet *p, control_message *message);
void puppet_end(puppet *p);

#endif
