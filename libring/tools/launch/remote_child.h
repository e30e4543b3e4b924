/* SPDX-License-Identifier: Apache-2.0
 * remote_child: the far side of a connection to another host. */
#ifndef LAUNCH_REMOTE_CHILD_H
#define LAUNCH_REMOTE_CHILD_H

/** `ringrun --remote-child`. @return the exit code. */
int remote_child(void);

#endif
