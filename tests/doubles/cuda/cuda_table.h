/* SPDX-License-Identifier: Apache-2.0
 * cuda_table: functions of the driver API for tests, found as the library finds them: of a driver
 * or of its double. */
#ifndef TEST_DOUBLES_CUDA_TABLE_H
#define TEST_DOUBLES_CUDA_TABLE_H

#include "fake_cuda_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct cuda_table {
#define ROW(name, member, parameters) CUresult(*member) parameters;
    CUDA_FUNCTIONS(ROW)
    TEST_CUDA_FUNCTIONS(ROW)
#undef ROW
} cuda_table;

/** Ends the process with 77 if there is no such function: the test is skipped. */
static inline void cuda_take(const char *name, void *member)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *found = library != NULL ? dlsym(library, name) : NULL;
    if (found == NULL) {
        fprintf(stderr, "SKIPPED: no %s in libcuda.so.1\n", name);
        exit(77);
    }
    memcpy(member, &found, sizeof found);
}

static inline cuda_table cuda_functions(void)
{
    cuda_table t;
#define ROW(name, member, parameters) cuda_take("cu" #name, &t.member);
    CUDA_FUNCTIONS(ROW)
    TEST_CUDA_FUNCTIONS(ROW)
#undef ROW
    return t;
}

/** EXPECT of tests/coll/harness.h, for a call of the table. */
#define EXPECT_CUDA(call) \
    do { \
        const CUresult expect_result = (call); \
        EXPECT(expect_result == CUDA_SUCCESS, "CUDA error %d", expect_result); \
    } while (0)

#endif
