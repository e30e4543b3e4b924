/* SPDX-License-Identifier: Apache-2.0
 *
 * Where libring's memory files are in use: mapped, or open, in processes. They have no name in
 * any directory, so this is the only trace that one could leave. */
#ifndef TEST_FAULT_TRACES_H
#define TEST_FAULT_TRACES_H

typedef void (*traces_visitor)(unsigned long inode, void *context);

/** Calls @p visit for each mapping and each descriptor of a memory file.
 *  @param process  its number, or "self". */
void traces_of(const char *process, traces_visitor visit, void *context);
/** Of all processes that may be looked into. */
void traces_everywhere(traces_visitor visit, void *context);

#endif
