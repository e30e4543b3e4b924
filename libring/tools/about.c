/* SPDX-License-Identifier: Apache-2.0
 * Version, compiler and features, as the build knows them. */
#include "about.h"

#include "base.h"

const char *about_compiler(void)
{
    return RING_BUILT_BY;
}

const char *about_features(void)
{
    return RING_BUILT_WITH;
}

void about_print(FILE *out, const char *program)
{
    const int version = ring_version();
    fprintf(out, "%s (libring) %d.%d.%d\n", program, version / 10000, version / 100 % 100,
            version % 100);
    fprintf(out, "compiler: %s\nfeatures: %s\n", about_compiler(), about_features());
}
