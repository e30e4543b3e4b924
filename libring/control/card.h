/* SPDX-License-Identifier: Apache-2.0
 *
 * card: holds the facts about a rank that all other ranks need, as plain data of a fixed size: the
 * addresses of its listeners, its CPUs and transports, and hashes of its host and process, which
 * are equal for ranks that share them.
 */
#ifndef RING_CONTROL_CARD_H
#define RING_CONTROL_CARD_H

#include "address.h"
#include "base.h"

enum { CARD_NAME_MAX = 64 };

typedef struct control_card {
    int32_t rank;
    int32_t pid;
    uint32_t uid;
    uint32_t transports;       /* bit i: it may and can use transport_all()[i]         */
    uint32_t cpus;             /* the number of CPUs on which it may run               */
    uint32_t cpu_set;          /* hash of the set of these CPUs                        */
    uint32_t runs_programs;    /* 1: it has an accelerator that may run calls          */
    unsigned char host[16];    /* hash of boot id, network namespace and RING_HOST_ID   */
    unsigned char process[16]; /* hash of host, pid namespace, pid and start time      */
    char hostname[CARD_NAME_MAX];
    unsigned char address[ADDRESS_PACKED]; /* its TCP listener, see address_pack()     */
    char unix_name[CARD_NAME_MAX];         /* its AF_UNIX listener, for its host       */
} control_card;

/** Fills in the fields that identify this process and its host, and its CPUs.
 *  @param host_id  RING_HOST_ID. */
ring_status card_fill(control_card *card, const char *host_id);
/** Makes the texts of a received card printable. */
void card_clean(control_card *card);
/** @return true if both ranks are on one host and of one user, so that AF_UNIX can connect them. */
bool card_is_local(const control_card *a, const control_card *b);
/** Writes the name of a rank for messages: "rank 2 (host7, pid 123)", or "rank 2" if its card has
 * not arrived. */
void card_name(const control_card *card, int rank, char *out, size_t size);

#endif
