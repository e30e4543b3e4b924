/* SPDX-License-Identifier: Apache-2.0
 * Checks that libnccl.so.2 exports the functions that programs link, and the layout of structs that
 * callers pass. Usage: test_nccl_abi FILE LIBRARY, a list of names with a comment for each program,
 * and libnccl.so.2. */
#include "nccl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit_test.h"

static const char *list, *path;

static void names_are_exported(void **state)
{
    char line[128];
    int names = 0;
    FILE *file = fopen(list, "r");
    void *library = dlopen(path, RTLD_NOW);
    assert_non_null(file);
    if (library == NULL)
        fail_msg("%s", dlerror());
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#' || line[0] == '\0')
            continue;
        if (dlsym(library, line) == NULL)
            fail_msg("libnccl.so.2 has no %s", line);
        names++;
    }
    assert_true(names > 50);
    fclose(file);
}

/* Sizes and offsets of NCCL's versions on 64-bit Linux. */
static void structs_have_nccls_layout(void **state)
{
    static const struct {
        const char *version;
        size_t last, end; /* the offset of its last member, the end of the struct */
    } versions[] = {
        {"2.18 to 2.24", offsetof(ncclConfig_t, splitShare), 48},
        {"2.25, 2.26", offsetof(ncclConfig_t, trafficClass), 48},
        {"2.27", offsetof(ncclConfig_t, nvlsCTAs), 72},
        {"2.28", offsetof(ncclConfig_t, nvlinkCentricSched), 80},
    };
    assert_int_equal(sizeof(ncclUniqueId), 128);
    assert_int_equal(sizeof(ncclSimInfo_t), 24);
    assert_int_equal(sizeof(ncclConfig_t), 80);
    assert_int_equal(offsetof(ncclConfig_t, blocking), 16);
    assert_int_equal(offsetof(ncclConfig_t, netName), 32);
    assert_int_equal(offsetof(ncclConfig_t, splitShare), 40);
    assert_int_equal(offsetof(ncclConfig_t, commName), 48);
    assert_int_equal(offsetof(ncclConfig_t, nvlinkCentricSched), 76);
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        assert_true(versions[i].last + sizeof(int) <= versions[i].end);
}

/* nccl-tests do not find the library's ncclGetLastError(), since they have one of their own. */
static void reasons_are_in_nccls_log(void **state)
{
    int ends[2], version;
    char line[256];
    assert_int_equal(pipe(ends), 0);
    const int saved = dup(STDERR_FILENO);
    setenv("NCCL_DEBUG", "WARN", 1);
    setenv("RING_NCCL_VERSION", "two", 1);
    dup2(ends[1], STDERR_FILENO);
    assert_int_equal(ncclGetVersion(&version), ncclInvalidUsage);
    assert_int_equal(ncclGetVersion(&version), ncclInvalidUsage); /* logged once */
    dup2(saved, STDERR_FILENO);
    close(ends[1]);
    const ssize_t bytes = read(ends[0], line, sizeof line - 1);
    assert_in_range(bytes, 1, sizeof line - 1);
    line[bytes] = '\0';
    assert_non_null(strstr(line, "[ring] warn: RING_NCCL_VERSION=two: must be"));
    assert_ptr_equal(strchr(line, '\n'), &line[bytes - 1]);
    close(ends[0]);
    close(saved);
    unsetenv("NCCL_DEBUG");
    unsetenv("RING_NCCL_VERSION");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_exported),
        cmocka_unit_test(structs_have_nccls_layout),
        cmocka_unit_test(reasons_are_in_nccls_log),
    };
    if (argc != 3)
        return 2;
    list = argv[1];
    path = argv[2];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
