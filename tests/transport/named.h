/* SPDX-License-Identifier: Apache-2.0
 * named: runs a test by its name; each runs in a process of its own, as one ctest entry. */
#ifndef TEST_TRANSPORT_NAMED_H
#define TEST_TRANSPORT_NAMED_H

#include <stddef.h>

typedef struct named_test {
    const char *name;
    void (*run)(void);
} named_test;

/** @return exit status of the program: 0 passed, 2 if there is no such test. */
int named_run(const named_test *tests, size_t count, const char *name);

#endif
