/* SPDX-License-Identifier: Apache-2.0
 * The two listeners of a rank: TCP for other hosts, an abstract AF_UNIX name for this one. */
#include "star.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* What the user chose, but nothing beats "no secret: 127.0.0.1 only"; else the address that
 * rank 0 is reached from. */
static ring_status door_address(const settings *s, const pass *p, int rank, boot_address *own)
{
    own->length = 0;
    if (!p->check_uid)
        RING_TRY(address_chosen(s, own));
    else if (rank == 0 && (s->address[0] != '\0' || s->interface[0] != '\0'))
        log_at(s->address[0] != '\0' ? LOG_WARN : LOG_INFO,
               "without a secret only 127.0.0.1 is listened on, whatever RING_ADDR and "
               "RING_SOCKET_IFNAME say");
    return own->length != 0 ? RING_OK : address_towards(&p->at[0], own);
}

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

ring_status doors_open(boot_world *world, const pass *p)
{
    boot_address own;
    RING_TRY(door_address(&world->settings, p, world->rank, &own));
    boot_doors *doors = calloc(1, sizeof *doors);
    boot_card *card = &world->cards[world->rank];
    if (doors == NULL)
        return fail(RING_ERR_MEMORY, "creating listeners");
    doors->terms = (hand_terms){.rank = world->rank, .size = world->size};
    memcpy(doors->terms.key, p->key, sizeof p->key);
    doors->tcp.listener = doors->local.listener = -1;
    world->doors = doors;
    if (p->check_uid && (doors->terms.users = owner_table()) == NULL)
        return fail(RING_ERR_SYSTEM, "reading the table of users' connections: %m; set "
                    "RING_SECRET_FILE");
    RING_TRY(listen_tcp(doors, &own, card));
    return listen_local(doors, card);
}

void doors_free(boot_world *world)
{
    boot_doors *doors = world->doors;
    world->doors = NULL;
    if (doors == NULL)
        return;
    doorman_close(&doors->tcp);
    doorman_close(&doors->local);
    if (doors->terms.users != NULL)
        fclose(doors->terms.users);
    sodium_memzero(&doors->terms, sizeof doors->terms);
    free(doors);
}
