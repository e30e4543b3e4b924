/* SPDX-License-Identifier: Apache-2.0
 *
 * layout: places the ranks of a job on hosts. The ranks of one host are consecutive, and the hosts
 * are in the order of the list.
 */
#ifndef LAUNCH_LAYOUT_H
#define LAUNCH_LAYOUT_H

#include "host_list.h"

enum { RANKS_MAX = 65536 };

/** The ranks of one host. */
typedef struct share {
    char *host;            /* its name as the user wrote it                 */
    char *address;         /* of the host, numeric; NULL: unknown           */
    bool local;            /* this ringrun starts the ranks, without ssh    */
    int node;              /* number of the host                            */
    int first_rank, ranks; /* ranks first_rank to first_rank + ranks - 1    */
    int *slots;            /* [ranks] slot of each; with --bind-to core, the core */
} share;

typedef struct layout {
    share *shares;
    size_t count;
    int ranks; /* number of ranks of all shares */
} layout;

/** The numbers that the user has given; 0: not given. */
typedef struct layout_wish {
    int ranks, per_node, nodes;
} layout_wish;

/** Places the ranks. With per_node, each host gets that many ranks. Otherwise the hosts are filled
 *  in order up to their slots, and again from the first host if there are more ranks than slots.
 *  Without a number of ranks, each slot gets one.
 *  @param[out] out  to be freed by layout_free(). */
ring_status layout_make(const host_list *hosts, const layout_wish *wish, layout *out);
/** Frees all shares. */
void layout_free(layout *l);

/** @return the share that runs @p rank. */
const share *layout_share_of(const layout *l, int rank);
void share_free(share *s);

#endif
