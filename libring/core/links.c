/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the transport for each pair of ranks: the first of the list that both ranks allow and
 * that can join them. Both ranks choose from their two cards alone, so they choose the same.
 */
#include "links.h"

#include "automatic.h"
#include "comm.h"
#include "transport_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ring_status links_mask(const settings *s, uint32_t *mask)
{
    size_t count;
    const transport *const *all = transport_all(&count);
    const char *names[32];
    uint32_t asked = 0;
    for (size_t i = 0; i < count; i++) {
        names[i] = all[i]->name;
        asked |= all[i]->powers & TRANSPORT_ASKED ? 1u << i : 0;
    }
    RING_TRY(settings_transports(s, names, count, asked, mask));
    for (size_t i = 0; i < count; i++) {
        char why[256] = "";
        if (!(*mask & 1u << i) || all[i]->probe(&s->ib, why, sizeof why))
            continue;
        log_info("transport %s is not used: %s", all[i]->name, why);
        *mask &= ~(1u << i);
    }
    return *mask != 0 ? RING_OK
                      : fail(RING_ERR_CONFIG,
                             "none of the transports that RING_TRANSPORT=%s allows works here; "
                             "run ringinfo for the reasons",
                             s->transport);
}

/* @return the first transport of @p mask that uses adapters with rails; NULL: none. */
static const transport *find_railed(uint32_t mask)
{
    size_t count;
    const transport *const *all = transport_all(&count);
    for (size_t i = 0; i < count; i++)
        if ((mask & 1u << i) && all[i]->rails != NULL)
            return all[i];
    return NULL;
}

bool links_use_adapters(uint32_t mask)
{
    return find_railed(mask) != NULL;
}

int links_rails(const settings *s, uint32_t mask)
{
    const transport *railed = find_railed(mask);
    return railed != NULL ? (int)min_size((size_t)railed->rails(&s->ib), SETTINGS_MOST_CHANNELS)
                          : 1;
}

/* @return true if the transport can join the ranks of two cards. @param sealed  frames between
 * hosts must be encrypted. */
static bool reaches(const transport *t, const control_card *a, const control_card *b, bool sealed)
{
    const bool same_host = memcmp(a->host, b->host, sizeof a->host) == 0 && a->uid == b->uid;
    const bool same_process = same_host && memcmp(a->process, b->process, sizeof a->process) == 0;
    if (t->powers & TRANSPORT_SAME_PROCESS)
        return same_process;
    if (t->powers & TRANSPORT_SAME_HOST)
        return same_host;
    return same_host || !sealed || (t->powers & TRANSPORT_SEALS) != 0;
}

static const transport *strongest(const control_card *a, const control_card *b, bool sealed,
                                  uint16_t *number)
{
    size_t count;
    const transport *const *all = transport_all(&count);
    for (size_t i = 0; i < count; i++) {
        *number = (uint16_t)i;
        if ((a->transports & b->transports & 1u << i) && reaches(all[i], a, b, sealed))
            return all[i];
    }
    return NULL;
}

static bool is_sealed(const ring_comm *comm)
{
    return comm->settings.encrypt != ENCRYPT_NO;
}

const transport *links_strongest(const ring_comm *comm, int a, int b, uint16_t *number)
{
    return strongest(&comm->world->cards[a], &comm->world->cards[b], is_sealed(comm), number);
}

/* ---- Which pairs can map memory? ---------------------------------------------------------- */

/* The ranks of one process that allow the same transports. They have the same links to all other
 * ranks, so links_map() compares pairs of classes instead of pairs of ranks. */
typedef struct card_class {
    const control_card *card;
    int host, members;
} card_class;

static bool same_class(const control_card *a, const control_card *b)
{
    return a->uid == b->uid && a->transports == b->transports &&
           memcmp(a->host, b->host, sizeof a->host) == 0 &&
           memcmp(a->process, b->process, sizeof a->process) == 0;
}

static int classify(const ring_comm *comm, card_class *classes)
{
    int count = 0;
    for (int p = 0; p < comm->ranks; p++) {
        const control_card *card = &comm->world->cards[p];
        int at = 0;
        while (at < count && !same_class(card, classes[at].card))
            at++;
        if (at == count)
            classes[count++] = (card_class){.card = card,
                                            .host = plan_host_of(&comm->plan_world, p)};
        classes[at].members++;
    }
    return count;
}

/* @return true if each pair of ranks on different hosts is joined by a transport with rails. */
static bool all_have_rails(const ring_comm *comm, const card_class *classes, int count)
{
    for (int a = 0; a < count; a++) {
        for (int b = a + 1; b < count; b++) {
            uint16_t number;
            const transport *t = strongest(classes[a].card, classes[b].card, is_sealed(comm),
                                           &number);
            if (classes[a].host != classes[b].host && (t == NULL || t->rails == NULL))
                return false;
        }
    }
    return true;
}

ring_status links_map(ring_comm *comm)
{
    card_class *classes = malloc((size_t)comm->ranks * sizeof *classes);
    if (classes == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while creating the communicator");
    const int count = classify(comm, classes);
    comm->links.maps_all = comm->links.maps_hosts = true;
    for (int a = 0; a < count && comm->links.maps_hosts; a++) {
        for (int b = a; b < count; b++) {
            const bool alone = a == b && classes[a].members == 1;
            uint16_t number;
            /* Only ranks of one host map memory, and their links need no encryption. */
            const transport *t = strongest(classes[a].card, classes[b].card, false, &number);
            const bool map = alone || (t != NULL && (t->powers & TRANSPORT_CAN_MAP) != 0);
            comm->links.maps_all &= map;
            comm->links.maps_hosts &= map || classes[a].host != classes[b].host;
        }
    }
    comm->links.over_rails = comm->plan_world.hosts > 1 && all_have_rails(comm, classes, count);
    free(classes);
    return RING_OK;
}

/* ---- This rank's links --------------------------------------------------------------------- */

/* If RING_ENCRYPT excludes a stronger transport than the chosen one, logs that.
 * @return true if it was logged. */
static bool note_unsealed(const ring_comm *comm, int peer, const transport *taken)
{
    const control_card *cards = comm->world->cards;
    uint16_t number;
    const transport *other = strongest(&cards[comm->rank], &cards[peer], false, &number);
    if (other != taken)
        log_info("%s is not used between hosts: RING_ENCRYPT requires encryption, which it lacks",
                 other->name);
    return other != taken;
}

static ring_status no_transport(const ring_comm *comm, int peer)
{
    const control_card *cards = comm->world->cards;
    return fail(
        RING_ERR_CONFIG,
        "no transport can join rank %d (%s) and rank %d (%s)%s; allow tcp in RING_TRANSPORT on "
        "both ranks",
        comm->rank, cards[comm->rank].hostname, peer, cards[peer].hostname,
        is_sealed(comm) ? " with encryption, which RING_ENCRYPT requires" : "");
}

ring_status links_check(ring_comm *comm)
{
    if (comm->settings.fault[0] != '\0')
        RING_TRY(transport_fault_check(comm->settings.fault));
    bool noted = false, registers = false;
    snprintf(comm->links.names, sizeof comm->links.names, "%s", comm->ranks == 1 ? "self" : "");
    for (int p = 0; p < comm->ranks; p++) {
        uint16_t number;
        const transport *t = p != comm->rank ? links_strongest(comm, comm->rank, p, &number) : NULL;
        if (t == NULL && p != comm->rank)
            return no_transport(comm, p);
        if (t == NULL)
            continue;
        if (is_sealed(comm) && !noted)
            noted = note_unsealed(comm, p, t);
        char *names = comm->links.names;
        if (strstr(names, t->name) == NULL)
            text_append(names, sizeof comm->links.names, "%s%s", names[0] != '\0' ? "+" : "",
                        t->name);
        comm->links.reaches |= (t->powers & TRANSPORT_REACHES) != 0;
        registers |= (t->powers & TRANSPORT_REGISTERS) != 0;
    }
    if (registers && comm->settings.registration_cache && !comm->links.registers) {
        comm->links.registers = true;
        automatic_enter();
    }
    return RING_OK;
}
