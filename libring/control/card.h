/* SPDX-License-Identifier: Apache-2.0
 *
 * card: the facts about a rank that all other ranks need, as plain data of a fixed size. They say
 * where the rank can be reached, and which ranks share a host or a process with it.
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
    uint32_t transports;       /* bit i: transport_all()[i] allowed and usable here   */
    uint32_t cpus;             /* number of CPUs it may run on                        */
    uint32_t cpu_set;          /* hash of their set                                   */
    uint32_t runs_programs;    /* it has an accelerator that may run calls            */
    unsigned char host[16];    /* hash of boot id and network namespace: same host    */
    unsigned char process[16]; /* hash of host, pid and start: same address space     */
    char hostname[CARD_NAME_MAX];
    unsigned char address[ADDRESS_PACKED]; /* to which peers connect by TCP           */
    char unix_name[CARD_NAME_MAX];         /* abstract socket for peers on its host   */
} control_card;

/** Fills in the fields that identify this process and its host, and its CPUs. */
ring_status card_fill(control_card *card);
/** Makes the texts of a received card printable. */
void card_clean(control_card *card);
/** @return true if both ranks are on one host and of one user, so that AF_UNIX connects them. */
bool card_is_local(const control_card *a, const control_card *b);
/** Writes "rank 2 (host7, pid 123)", or "rank 2" if its card has not arrived. */
void card_name(const control_card *card, int rank, char *out, size_t size);

#endif
