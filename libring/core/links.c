/* SPDX-License-Identifier: Apache-2.0
 *
 * Which transport joins which pair of ranks, and opening the links. Both ranks of a pair
 * decide from the two cards alone, so they agree.
 */
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
    for (size_t i = 0; i < count; i++)
        names[i] = all[i]->name;
    RING_TRY(settings_transports(s, names, count, mask));
    for (size_t i = 0; i < count; i++) {
        char why[256] = "";
        if ((*mask & 1u << i) && !all[i]->probe(why, sizeof why)) {
            log_info("transport %s is not used: %s", all[i]->name, why);
            *mask &= ~(1u << i);
        }
    }
    return *mask != 0 ? RING_OK : fail(RING_ERR_CONFIG, "none of the transports that "
                                       "RING_TRANSPORT=%s allows works here; ringinfo tells why",
                                       s->transport);
}

static bool reaches(const transport *t, const control_card *a, const control_card *b)
{
    const bool same_host = memcmp(a->host, b->host, sizeof a->host) == 0 && a->uid == b->uid;
    const bool same_process = same_host && memcmp(a->process, b->process, sizeof a->process) == 0;
    if (t->powers & TRANSPORT_SAME_PROCESS)
        return same_process;
    return (t->powers & TRANSPORT_SAME_HOST) == 0 || same_host;
}

/* @param[out] number  its number among all. */
static const transport *strongest(const control_card *a, const control_card *b, uint16_t *number)
{
    size_t count;
    const transport *const *all = transport_all(&count);
    for (size_t i = 0; i < count; i++) {
        *number = (uint16_t)i;
        if ((a->transports & b->transports & 1u << i) && reaches(all[i], a, b))
            return all[i];
    }
    return NULL;
}

static bool pair_maps(const ring_comm *comm, int a, int b)
{
    uint16_t number;
    const transport *t = strongest(&comm->world->cards[a], &comm->world->cards[b], &number);
    return t != NULL && (t->powers & TRANSPORT_CAN_MAP) != 0;
}

bool links_all_map(const ring_comm *comm, bool same_host_only)
{
    const plan_world *world = &comm->plan_world;
    for (int a = 0; a < comm->ranks; a++)
        for (int b = a + 1; b < comm->ranks; b++)
            if ((!same_host_only || plan_host_of(world, a) == plan_host_of(world, b)) &&
                !pair_maps(comm, a, b))
                return false;
    return true;
}

static ring_status choose_all(ring_comm *comm, const transport **chosen, control_route *routes)
{
    const control_card *cards = comm->world->cards;
    for (int p = 0; p < comm->ranks; p++) {
        if (p == comm->rank)
            continue;
        chosen[p] = strongest(&cards[comm->rank], &cards[p], &routes[p].transport);
        if (chosen[p] == NULL)
            return fail(RING_ERR_CONFIG, "no transport joins rank %d (%s) and rank %d (%s): allow "
                        "tcp in RING_TRANSPORT on both", comm->rank, cards[comm->rank].hostname, p,
                        cards[p].hostname);
        routes[p].local =
            (chosen[p]->powers & (TRANSPORT_SAME_PROCESS | TRANSPORT_SAME_HOST)) != 0;
    }
    return RING_OK;
}

static ring_status wrap_fault(ring_comm *comm, transport_link **slot)
{
    if (comm->settings.fault[0] == '\0')
        return RING_OK;
    transport_link *inner = *slot;
    *slot = NULL;
    return transport_fault_wrap(inner, comm->settings.fault, slot);
}

static ring_status open_one(ring_comm *comm, const transport *t, int peer, int lane, int *fd)
{
    const transport_peer ends = {.rank = comm->rank, .peer = peer,
                                 .lane = (enum transport_lane)lane, .fd = *fd,
                                 .deadline = comm->world->deadline,
                                 .peer_timeout = comm->settings.peer_timeout};
    *fd = -1; /* the link's from here */
    channel *c = comm_channel(comm, (enum transport_lane)lane, peer);
    RING_TRY(t->open(&ends, &c->link));
    return wrap_fault(comm, &c->link);
}

/* Both ends of a pair open together. Every rank goes through its peers in ascending order, so
 * a pair (a, b) waits only for pairs of a smaller sum: no circle. */
static ring_status open_all(ring_comm *comm, const transport **chosen, int **fds)
{
    for (int p = 0; p < comm->ranks; p++)
        for (int lane = 0; lane < TRANSPORT_LANES && p != comm->rank; lane++)
            RING_TRY(open_one(comm, chosen[p], p, lane, &fds[lane][p]));
    return RING_OK;
}

static void describe(ring_comm *comm, const transport **chosen)
{
    comm->transport[0] = '\0';
    for (int p = 0; p < comm->ranks; p++) {
        if (chosen[p] == NULL || strstr(comm->transport, chosen[p]->name) != NULL)
            continue;
        const size_t used = strlen(comm->transport);
        snprintf(comm->transport + used, sizeof comm->transport - used, "%s%s",
                 used > 0 ? "+" : "", chosen[p]->name);
    }
    if (comm->ranks == 1)
        snprintf(comm->transport, sizeof comm->transport, "self");
}

static void close_sockets(ring_comm *comm, int **fds)
{
    for (int lane = 0; lane < TRANSPORT_LANES; lane++)
        for (int p = 0; p < comm->ranks; p++)
            fd_close(&fds[lane][p]);
    links_close(comm);
}

static ring_status connect_and_open(ring_comm *comm, const transport **chosen,
                                    control_route *routes, int **fds)
{
    /* The choice is agreed on before anybody waits for a connection that will not come. */
    RING_TRY(control_agree(comm->world, choose_all(comm, chosen, routes)));
    RING_TRY(control_connect(comm->world, routes, TRANSPORT_LANES, fds));
    const ring_status status = open_all(comm, chosen, fds);
    if (status != RING_OK) {
        control_announce(comm->world, status); /* the reason comes before its effects */
        close_sockets(comm, fds);           /* ends the peers' waits for this rank */
    }
    describe(comm, chosen);
    return control_agree(comm->world, status);
}

ring_status links_open(ring_comm *comm)
{
    const size_t ranks = (size_t)comm->ranks;
    const transport **chosen = calloc(ranks, sizeof *chosen);
    control_route *routes = calloc(ranks, sizeof *routes);
    int *fds[TRANSPORT_LANES];
    int *all_fds = malloc(TRANSPORT_LANES * ranks * sizeof *all_fds);
    ring_status status = RING_ERR_MEMORY;
    if (chosen != NULL && routes != NULL && all_fds != NULL) {
        for (size_t i = 0; i < TRANSPORT_LANES * ranks; i++)
            all_fds[i] = -1;
        for (size_t lane = 0; lane < TRANSPORT_LANES; lane++)
            fds[lane] = all_fds + lane * ranks;
        status = connect_and_open(comm, chosen, routes, fds);
        if (status != RING_OK)
            close_sockets(comm, fds);
    } else {
        fail(status, "opening links to %d ranks", comm->ranks);
    }
    free(all_fds);
    free(routes);
    free(chosen);
    return status;
}

void links_close(ring_comm *comm)
{
    for (size_t i = 0; comm->channels != NULL && i < TRANSPORT_LANES * (size_t)comm->ranks; i++) {
        transport_link *l = comm->channels[i].link;
        if (l != NULL)
            l->transport->close(l);
        comm->channels[i].link = NULL;
    }
}
