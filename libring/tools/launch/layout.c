/* SPDX-License-Identifier: Apache-2.0
 * Places ranks on hosts, either by the slots of the hosts or by the number of ranks that the user
 * wants on each host. */
#include "layout.h"

#include <stdlib.h>
#include <string.h>

void share_free(share *s)
{
    free(s->host);
    free(s->address);
    free(s->slots);
    *s = (share){0};
}

void layout_free(layout *l)
{
    for (size_t i = 0; i < l->count; i++)
        share_free(&l->shares[i]);
    free(l->shares);
    *l = (layout){0};
}

const share *layout_share_of(const layout *l, int rank)
{
    size_t i = 0;
    while (i + 1 < l->count && rank >= l->shares[i].first_rank + l->shares[i].ranks)
        i++;
    return &l->shares[i];
}

/* Adds a host with the next @p ranks ranks; nothing if that is 0. */
static void add_share(layout *out, const host_entry *h, long ranks)
{
    if (ranks == 0)
        return;
    out->shares = memory_more(out->shares, out->count, sizeof *out->shares);
    share *added = &out->shares[out->count];
    *added = (share){.host = memory_text(h->name, strlen(h->name)),
                     .local = h->here,
                     .node = (int)out->count,
                     .first_rank = out->ranks,
                     .ranks = (int)ranks};
    if (h->addresses.count > 0)
        added->address = memory_text(h->addresses.items[0], strlen(h->addresses.items[0]));
    added->slots = memory_grow(NULL, (size_t)ranks, sizeof *added->slots);
    for (int i = 0; i < added->ranks; i++)
        added->slots[i] = h->ids != NULL ? h->ids[i % h->slots] : i;
    out->count++;
    out->ranks += (int)ranks;
}

/* @return the number of ranks that a host gets before the next host has its turn. */
static long slots_of(const host_entry *h, const layout_wish *wish)
{
    return wish->per_node > 0 ? wish->per_node : h->slots;
}

/* If the user gives both the number of all ranks and of those on each host, reduces the number of
 * hosts to those needed. */
static ring_status count_nodes(const layout_wish *wish, size_t *nodes)
{
    if (wish->per_node == 0 || wish->ranks == 0)
        return RING_OK;
    const size_t needed = (size_t)(wish->ranks / wish->per_node);
    if (wish->ranks % wish->per_node != 0 || needed > *nodes ||
        (wish->nodes > 0 && needed != *nodes))
        return fail(RING_ERR_CONFIG, "%d rank%s, %d on each host, do not fit on %zu host%s",
                    wish->ranks, plural(wish->ranks), wish->per_node, *nodes, plural(*nodes));
    *nodes = needed;
    return RING_OK;
}

/* Fills the slots of all hosts as often as all slots are needed, then, with the remaining ranks,
 * the slots of the first hosts. */
static ring_status fill_slots(const host_list *hosts, const layout_wish *wish, size_t nodes,
                              layout *out)
{
    long slots = 0;
    for (size_t i = 0; i < nodes; i++)
        slots += slots_of(hosts->items[i], wish);
    const long ranks = wish->ranks > 0 ? wish->ranks : slots;
    if (slots == 0)
        return fail(RING_ERR_CONFIG, "the hosts have no slots");
    if (ranks > RANKS_MAX)
        return fail(RING_ERR_CONFIG, "%ld ranks are too many; at most %d are possible", ranks,
                    RANKS_MAX);
    long rest = ranks % slots;
    for (size_t i = 0; i < nodes; i++) {
        const long own = slots_of(hosts->items[i], wish), of_rest = rest < own ? rest : own;
        add_share(out, hosts->items[i], ranks / slots * own + of_rest);
        rest -= of_rest;
    }
    return RING_OK;
}

ring_status layout_make(const host_list *hosts, const layout_wish *wish, layout *out)
{
    size_t nodes = wish->nodes > 0 ? (size_t)wish->nodes : hosts->count;
    *out = (layout){0};
    if (nodes > hosts->count)
        return fail(RING_ERR_CONFIG,
                    "%zu node%s requested, but only %zu known; name all with --hostfile or -H, or "
                    "start each with --node-rank",
                    nodes, plural(nodes), hosts->count);
    RING_TRY(count_nodes(wish, &nodes));
    return fill_slots(hosts, wish, nodes, out);
}
