/* SPDX-License-Identifier: Apache-2.0
 * Prints the version, and the compiler and features that the build system defines as macros. */
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
