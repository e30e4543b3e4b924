/* SPDX-License-Identifier: Apache-2.0
 * The two listeners of a rank: TCP for other hosts, an abstract AF_UNIX name for this one. */
#include "star.h"

#include <stdlib.h>
#include <string.h>

static ring_status listen_tcp(boot_doors *doors, const boot_address *own, boot_card *card)
{
    boot_address at = *own;
    int fd;
    char text[ADDRESS_TEXT_MAX];
    address_set_port(&at, 0);
    if (address_listen(&at, &fd) != RING_OK)
        return fail(RING_ERR_SYSTEM, "no port is free at %s", address_text(own, text));
    doorman_open(&doors->tcp, fd, HAND_LINK, &doors->terms);
    address_pack(&at, card->address);
    return RING_OK;
}

static ring_status listen_local(boot_doors *doors, boot_card *card)
{
    int fd;
    address_unix_name(card->unix_name);
    boot_address at = address_unix(card->unix_name);
    if (address_listen(&at, &fd) != RING_OK)
        return fail(RING_ERR_SYSTEM, "%s", fail_text());
    doorman_open(&doors->local, fd, HAND_LINK, &doors->terms);
    return RING_OK;
}

ring_status doors_open(boot_world *world, const pass *p, const boot_address *own)
{
    boot_doors *doors = calloc(1, sizeof *doors);
    boot_card *card = &world->cards[world->rank];
    if (doors == NULL)
        return fail(RING_ERR_MEMORY, "creating listeners");
    doors->terms = (hand_terms){.check_uid = p->check_uid, .rank = world->rank,
                                .size = world->size};
    memcpy(doors->terms.key, p->key, sizeof p->key);
    doors->tcp.listener = doors->local.listener = -1;
    world->doors = doors;
    RING_TRY(listen_tcp(doors, own, card));
    return listen_local(doors, card);
}

void doors_close(boot_doors *doors)
{
    if (doors == NULL)
        return;
    doorman_close(&doors->tcp);
    doorman_close(&doors->local);
}
