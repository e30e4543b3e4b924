/* SPDX-License-Identifier: Apache-2.0 */
#include "simd_level.h"

#include "kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void level_from_arguments(int argc, char **argv)
{
    const char *level = argc > 1 ? argv[1] : "auto";
    if (!kernels_select(level)) {
        printf("SKIPPED: level %s: this CPU does not have its instructions\n", level);
        exit(77);
    }
    if (strcmp(level, "auto") != 0 && strcmp(level, kernels_level()) != 0) {
        printf("FAILED: asked for level %s, got %s\n", level, kernels_level());
        exit(1);
    }
    printf("level %s\n", kernels_level());
}
