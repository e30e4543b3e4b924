/* SPDX-License-Identifier: Apache-2.0
 * Runs one behaviour on one transport: test_transport_conformance TRANSPORT BEHAVIOUR. */
#include "conformance.h"
#include "named.h"

#include <stdio.h>

static const named_test behaviours[] = {
#define BEHAVIOUR(name) {#name, behaviour_##name},
#define REACHING(name) BEHAVIOUR(name)
#define PROCESSES(name) BEHAVIOUR(name)
#define USERSPACE(name) BEHAVIOUR(name)
#include "behaviours.h"
#undef BEHAVIOUR
#undef REACHING
#undef PROCESSES
#undef USERSPACE
};

int main(int argc, char **argv)
{
    if (argc == 3 && ends_choose(argv[1]))
        return named_run(behaviours, sizeof behaviours / sizeof *behaviours, argv[2]);
    fprintf(stderr, "usage: %s TRANSPORT BEHAVIOUR, of a known transport\n", argv[0]);
    return 2;
}
