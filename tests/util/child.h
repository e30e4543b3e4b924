/* SPDX-License-Identifier: Apache-2.0
 * child: what may end the process, in a child. */
#ifndef TESTS_CHILD_H
#define TESTS_CHILD_H

enum { CHILD_RETURNED = -1 };

/** Output of the latest child. */
extern char child_said[8192];

/** Calls @p body in a child. @return its exit status; CHILD_RETURNED if @p body came back. */
int child_run(void (*body)(const void *arg), const void *arg);

#endif
