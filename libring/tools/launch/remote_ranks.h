/* SPDX-License-Identifier: Apache-2.0
 *
 * remote_ranks: implements host_ranks for the ranks of another host, through one ssh connection. On
 * that host, ringrun --remote-child runs the ranks with local_ranks and kills them when the
 * connection ends.
 */
#ifndef LAUNCH_REMOTE_RANKS_H
#define LAUNCH_REMOTE_RANKS_H

#include "console.h"
#include "host_ranks.h"
#include "job.h"

/** Adds the words of the command "ssh -o… HOST 'PATH' --remote-child" to @p out.
 *  @param ssh_port  0: the default of ssh. @param path  of ringrun on that host. */
void remote_command(const char *host, int ssh_port, const char *path, texts *out);

/** @return a word in single quotes, so that a shell does not interpret it. The caller frees it. */
char *remote_quoted(const char *word);

/** Starts ssh and returns without waiting for an answer: (*out)->ready becomes true when the far
 *  side has answered. Keeps pointers to @p s and @p c. The order FRAME_KILL ends the connection,
 *  and with it the ranks. @param[out] out  to be freed by its operation free(), also after a
 *  failure. */
ring_status remote_open(const share *s, const texts *command, const rank_events *events, console *c,
                        host_ranks **out);
/** Sends the job to the far side, which must have answered. */
void remote_start(host_ranks *h, const job *j);

#endif
