/* SPDX-License-Identifier: Apache-2.0
 * The room's file, with its state in sight. */
#include "control_thread.c" /* NOLINT(bugprone-suspicious-include) */

#include "simulated_ranks.h"

sim_room sim_room_thread(void)
{
    return (sim_room){&loop, sizeof loop};
}
