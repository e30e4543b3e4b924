/* SPDX-License-Identifier: Apache-2.0
 * The room's file, with its state in sight. */
#include "acceptor.c" /* NOLINT(bugprone-suspicious-include) */

#include "simulated_ranks.h"

sim_room sim_room_acceptors(void)
{
    return (sim_room){first(), sizeof *first()};
}
