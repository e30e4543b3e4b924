/* SPDX-License-Identifier: Apache-2.0
 * A platform that gives its workers the requested resources by DC_DL_CONFIG:
 * {"framework": "pytorch", "name": "test", "worker": {"count": 2, "gpus": 8}}. */
#include "run_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Only this number counts, so the text is not parsed further. @return -1: there is none. */
static int number_of(const char *text, const char *name)
{
    int value = -1;
    const char *at = strstr(text, name);
    if (at == NULL)
        return -1;
    at += strlen(name);
    at += strspn(at, " \t\n");
    if (*at != ':')
        return -1;
    at++;
    at += strspn(at, " \t\n");
    return hosts_number(&at, 0, RANKS_MAX, &value) ? value : -1;
}

static void compare_workers(int count)
{
    const char *nodes = getenv("WORLD_SIZE");
    if (count > 1 && nodes == NULL)
        fprintf(stderr,
                "ringrun: DC_DL_CONFIG wants %d workers, but RANK and WORLD_SIZE do not say which "
                "this is: ranks are started here alone\n",
                count);
    else if (count > 0 && nodes != NULL && atoi(nodes) != count)
        fprintf(stderr, "ringrun: DC_DL_CONFIG wants %d workers, WORLD_SIZE is %.20s\n", count,
                nodes);
}

void options_take_platform(options *o)
{
    const char *text = getenv("DC_DL_CONFIG");
    if (text == NULL || o->ranks > 0 || o->per_node > 0 || o->include != NULL || o->exclude != NULL)
        return;
    const int gpus = number_of(text, "\"gpus\"");
    if (gpus < 0)
        return;
    o->per_node = gpus > 0 ? gpus : 1;
    fprintf(stderr, "ringrun: DC_DL_CONFIG has \"gpus\": %d: %d rank%s on each node\n", gpus,
            o->per_node, o->per_node == 1 ? "" : "s");
    compare_workers(number_of(text, "\"count\""));
}
