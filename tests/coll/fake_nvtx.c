/* SPDX-License-Identifier: Apache-2.0
 * A double of NVTX's library for test_nvtx.c. Each thread has a text of its ranges: "a(b())" says
 * that the range b began and ended within a. */
#include <stdio.h>
#include <string.h>

#define VISIBLE __attribute__((visibility("default")))

static _Thread_local char ranges[256];

VISIBLE const char *fake_nvtx_ranges(void);
VISIBLE int nvtxRangePushA(const char *name);
VISIBLE int nvtxRangePop(void);

static int append(const char *name, const char *mark)
{
    const size_t used = strlen(ranges);
    return snprintf(ranges + used, sizeof ranges - used, "%s%s", name, mark);
}

const char *fake_nvtx_ranges(void)
{
    return ranges;
}

int nvtxRangePushA(const char *name)
{
    return append(name, "(");
}

int nvtxRangePop(void)
{
    return append("", ")");
}
