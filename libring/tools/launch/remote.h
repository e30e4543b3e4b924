/* SPDX-License-Identifier: Apache-2.0
 *
 * remote: the ranks of another host, through one ssh. The ringrun there does what local_ranks does
 * here; when the connection ends, it ends its ranks.
 */
#ifndef LAUNCH_REMOTE_H
#define LAUNCH_REMOTE_H

#include "console.h"
#include "events.h"
#include "job.h"

typedef struct remote remote;

/** The command that is run: "ssh -o… HOST 'PATH' --remote-child".
 *  @param ssh_port  0: ssh's own default. @param path  of ringrun there. */
void remote_command(const char *host, int ssh_port, const char *path, texts *out);

/** A word as a shell reads it unchanged. free() it. */
char *remote_quoted(const char *word);

/** Starts ssh; the answer comes later. Borrows all it is given. */
ring_status remote_open(const share *s, const texts *command, const launch_events *events,
                        console *c, remote **out);
void remote_free(remote *r);

/** The far side is there and waits for the job. */
bool remote_ready(const remote *r);
/** The far side's own idea of its address; "" before remote_ready(). */
const char *remote_address(const remote *r);
void remote_start(remote *r, const job *j);

void remote_watch(remote *r, poll_set *set);
/** After SIGCHLD: notices that ssh has ended. */
void remote_collect(remote *r);
void remote_signal(remote *r, int signal_number);
void remote_stop(remote *r);
/** Ends the connection, which ends the ranks there. */
void remote_kill(remote *r);
void remote_mute(remote *r, int rank, int stream);
bool remote_hungry(const remote *r);
void remote_feed(remote *r, const char *data, size_t count);

/** @return ranks there that still run. */
int remote_alive(const remote *r);
bool remote_done(const remote *r);

/** `ringrun --remote-child`: the far side. @return the exit code. */
int remote_child(void);

#endif
