/* SPDX-License-Identifier: Apache-2.0
 * What all ways to join have in common. */
#include "world.h"
#include "identity.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

ring_status world_settings(settings *s)
{
    if (sodium_init() < 0)
        return fail(RING_ERR_SYSTEM, "libsodium cannot start: no random numbers");
    RING_TRY(settings_read(s));
    log_set_level(s->debug);
    return RING_OK;
}

static ring_status world_fill(boot_world *w, uint32_t transports)
{
    const size_t size = (size_t)w->size;
    const size_t controls = w->rank == 0 ? size : 1;
    w->cards = calloc(size, sizeof *w->cards);
    w->control = malloc(controls * sizeof *w->control);
    if (w->cards == NULL || w->control == NULL)
        return fail(RING_ERR_MEMORY, "cards of %d ranks", w->size);
    for (size_t i = 0; i < controls; i++)
        w->control[i] = -1;
    boot_card *card = &w->cards[w->rank];
    card->rank = w->rank;
    card->transports = transports;
    RING_TRY(world_settings(&w->settings));
    w->deadline = clock_now() + w->settings.init_timeout;
    return identity_fill(card);
}

ring_status world_new(int size, int rank, uint32_t transports, const char *launcher,
                      boot_world **out)
{
    boot_world *w = calloc(1, sizeof *w);
    *out = NULL;
    if (w == NULL)
        return fail(RING_ERR_MEMORY, "joining as rank %d", rank);
    w->rank = rank;
    w->size = size;
    text_format(w->launcher, sizeof w->launcher, "%s", launcher);
    log_set_rank(rank, size);
    const ring_status status = world_fill(w, transports);
    if (status == RING_OK)
        *out = w;
    else
        boot_free(w);
    return status;
}

ring_status world_host(boot_world *world, const pass *p, int listener)
{
    const ring_status status = doors_open(world, p);
    if (status == RING_OK)
        return star_host(world, listener);
    fd_close(&listener);
    return status;
}

ring_status world_listen(const settings *s, boot_address otherwise, boot_address *at, int *fd)
{
    char text[ADDRESS_TEXT_MAX];
    RING_TRY(address_chosen(s, at));
    if (at->length == 0)
        *at = otherwise;
    const ring_status status = address_listen(at, fd);
    return status != RING_IN_PROGRESS
               ? status
               : fail(RING_ERR_SYSTEM, "no port is free at %s", address_text(at, text));
}

void boot_free(boot_world *world)
{
    if (world == NULL)
        return;
    const int controls = world->rank == 0 ? world->size : 1;
    for (int i = 0; world->control != NULL && i < controls; i++)
        fd_close(&world->control[i]);
    doors_free(world);
    free(world->control);
    free(world->cards);
    free(world);
}
