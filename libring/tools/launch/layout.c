/* SPDX-License-Identifier: Apache-2.0
 * Placing ranks on hosts. */
#include "layout.h"

#include <stdlib.h>
#include <string.h>

void share_free(share *s)
{
    free(s->host);
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

static void add_share(layout *out, const host_entry *h, long ranks)
{
    if (ranks == 0)
        return;
    out->shares = memory_more(out->shares, out->count, sizeof *out->shares);
    share *added = &out->shares[out->count];
    *added = (share){.host = memory_text(h->name, strlen(h->name)),
                     .node = (int)out->count,
                     .first_rank = out->ranks,
                     .ranks = (int)ranks};
    added->slots = memory_grow(NULL, (size_t)ranks, sizeof *added->slots);
    for (int i = 0; i < added->ranks; i++)
        added->slots[i] = h->ids != NULL ? h->ids[i % h->slots] : i;
    out->count++;
    out->ranks += (int)ranks;
}

static long sum_slots(const host_list *hosts, size_t nodes)
{
    long slots = 0;
    for (size_t i = 0; i < nodes; i++)
        slots += hosts->items[i].slots;
    return slots;
}

static ring_status too_many(long ranks)
{
    return fail(RING_ERR_CONFIG, "%ld ranks; at most %d", ranks, RANKS_MAX);
}

/* With -n too, as many nodes as -n ranks need. */
static ring_status per_node(const host_list *hosts, const layout_wish *wish, size_t nodes,
                            layout *out)
{
    if (wish->ranks > 0) {
        const size_t needed = (size_t)(wish->ranks / wish->per_node);
        if (wish->ranks % wish->per_node != 0 || needed > nodes ||
            (wish->nodes > 0 && needed != nodes))
            return fail(RING_ERR_CONFIG, "%d ranks with %d on each host do not fit %zu host(s)",
                        wish->ranks, wish->per_node, nodes);
        nodes = needed;
    }
    if ((long)nodes * wish->per_node > RANKS_MAX)
        return too_many((long)nodes * wish->per_node);
    for (size_t i = 0; i < nodes; i++)
        add_share(out, &hosts->items[i], wish->per_node);
    return RING_OK;
}

static ring_status by_slots(const host_list *hosts, const layout_wish *wish, size_t nodes,
                            layout *out)
{
    const long slots = sum_slots(hosts, nodes);
    const long ranks = wish->ranks > 0 ? wish->ranks : slots;
    if (slots == 0)
        return fail(RING_ERR_CONFIG, "the hosts have no slots");
    if (ranks > RANKS_MAX)
        return too_many(ranks);
    long rest = ranks % slots;
    for (size_t i = 0; i < nodes; i++) {
        const long of_rest = rest < hosts->items[i].slots ? rest : hosts->items[i].slots;
        add_share(out, &hosts->items[i], ranks / slots * hosts->items[i].slots + of_rest);
        rest -= of_rest;
    }
    return RING_OK;
}

ring_status layout_make(const host_list *hosts, const layout_wish *wish, layout *out)
{
    const size_t nodes = wish->nodes > 0 ? (size_t)wish->nodes : hosts->count;
    *out = (layout){0};
    if (nodes > hosts->count)
        return fail(RING_ERR_CONFIG,
                    "%zu nodes are asked for, %zu are known; name them with --hostfile or -H, or "
                    "start each with --node-rank",
                    nodes, hosts->count);
    if (wish->per_node > 0)
        return per_node(hosts, wish, nodes, out);
    return by_slots(hosts, wish, nodes, out);
}
