/* SPDX-License-Identifier: Apache-2.0
 *
 * traces: finds processes that have libring's memory files mapped or open. These files have no name
 * in any directory, so this is the only trace that a killed process could leave. */
#ifndef TEST_FAULT_TRACES_H
#define TEST_FAULT_TRACES_H

typedef void (*traces_visitor)(unsigned long inode, void *context);

/** Calls @p visit for each mapping and each descriptor of a memory file.
 *  @param process  its number, or "self". */
void traces_of(const char *process, traces_visitor visit, void *context);
/** The same for all processes that this one may inspect. */
void traces_everywhere(traces_visitor visit, void *context);

#endif
