/* SPDX-License-Identifier: Apache-2.0
 * card: a rank's facts for all other ranks. Fixed size, plain data. */
#ifndef RING_CONTROL_CARD_H
#define RING_CONTROL_CARD_H

#include "address.h"
#include "base.h"

enum { CARD_NAME_MAX = 64 };

typedef struct control_card {
    int32_t rank;
    int32_t pid;
    uint32_t uid;
    uint32_t transports;       /* bit i: transport_all()[i] allowed and usable here   */
    uint32_t cpus;             /* how many it may run on                              */
    uint32_t cpu_set;          /* a hash of which                                     */
    uint32_t runs_programs;    /* it has an accelerator that may run calls            */
    unsigned char host[16];    /* hash of boot id and network namespace: same host    */
    unsigned char process[16]; /* hash of host, pid and start: same address space     */
    char hostname[CARD_NAME_MAX];
    unsigned char address[ADDRESS_PACKED]; /* where its TCP peers connect                 */
    char unix_name[CARD_NAME_MAX];         /* abstract socket of its local peers                  */
} control_card;

/** Fills in what identifies this process, host, process, hostname, pid, uid, and its CPUs. */
ring_status card_fill(control_card *card);
/** Makes the texts of a card from the wire fit to be shown. */
void card_clean(control_card *card);
/** @return true if both ranks are on one host and of one user: AF_UNIX joins them. */
bool card_is_local(const control_card *a, const control_card *b);
/** "rank 2 (host7, pid 123)"; "rank 2" if its card has not come. */
void card_name(const control_card *card, int rank, char *out, size_t size);

#endif
