/* SPDX-License-Identifier: Apache-2.0
 *
 * layout: computes the placement of ranks on hosts from the hosts and the options alone. Ranks of
 * one host are consecutive, and the order of hosts is that of the list.
 */
#ifndef LAUNCH_LAYOUT_H
#define LAUNCH_LAYOUT_H

#include "host_list.h"

enum { RANKS_MAX = 65536 };

/** The ranks of one host. */
typedef struct share {
    char *host;            /* as the user wrote it                          */
    char *address;         /* of the host, numeric; NULL: not known         */
    bool local;            /* here, without ssh                             */
    int node;              /* number of the host                            */
    int first_rank, ranks; /* its ranks                                     */
    int *slots;            /* [ranks] slot of each: the core, with --bind-to */
} share;

typedef struct layout {
    share *shares;
    size_t count;
    int ranks; /* of all shares */
} layout;

/** 0 means "not said". */
typedef struct layout_wish {
    int ranks, per_node, nodes;
} layout_wish;

/** Places the ranks: per_node on each of the nodes; or the slots in order, again from the
 *  first host when there are more ranks than slots; or every slot once.
 *  @param[out] out  layout_free() it. */
ring_status layout_make(const host_list *hosts, const layout_wish *wish, layout *out);
void layout_free(layout *l);

/** @return the share that runs @p rank. */
const share *layout_share_of(const layout *l, int rank);
void share_free(share *s);

#endif
