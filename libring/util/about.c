/* SPDX-License-Identifier: Apache-2.0
 * Version, compiler and features, as the build knows them. */
#include "about.h"

#include <ring/ring.h>
#include <stdio.h>

const char *about_compiler(void)
{
    return RING_BUILT_BY;
}

const char *about_features(void)
{
    return RING_BUILT_WITH;
}

void about_print(const char *program)
{
    printf("%s (libring) %d.%d.%d\ncompiler: %s\nfeatures: %s\n", program, RING_VERSION_MAJOR,
           RING_VERSION_MINOR, RING_VERSION_PATCH, RING_BUILT_BY, RING_BUILT_WITH);
}
