/* SPDX-License-Identifier: Apache-2.0
 * remote_child: runs the ranks of this host for a ringrun on another host, over an ssh connection.
 */
#ifndef LAUNCH_REMOTE_CHILD_H
#define LAUNCH_REMOTE_CHILD_H

/** Runs `ringrun --remote-child`, until all ranks of this host have ended. @return the exit
 *  code. */
int remote_child(void);

#endif
