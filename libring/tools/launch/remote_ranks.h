/* SPDX-License-Identifier: Apache-2.0
 *
 * remote_ranks: handles the ranks of another host through one ssh connection. The ringrun there
 * runs them with local_ranks, and ends them when the connection ends.
 */
#ifndef LAUNCH_REMOTE_RANKS_H
#define LAUNCH_REMOTE_RANKS_H

#include "console.h"
#include "host_ranks.h"
#include "job.h"

/** The command that is run: "ssh -o… HOST 'PATH' --remote-child".
 *  @param ssh_port  0: ssh's own default. @param path  of ringrun there. */
void remote_command(const char *host, int ssh_port, const char *path, texts *out);

/** A word as a shell reads it unchanged. free() it. */
char *remote_quoted(const char *word);

/** Starts ssh; the answer comes later. Borrows its arguments. @param[out] out  FRAME_KILL ends the
 *  connection, and with it the ranks there. */
ring_status remote_open(const share *s, const texts *command, const rank_events *events, console *c,
                        host_ranks **out);
/** Gives the far side, which has answered, the job. */
void remote_start(host_ranks *h, const job *j);

#endif
