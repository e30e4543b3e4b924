/* SPDX-License-Identifier: Apache-2.0
 * Finds the hosts of a job: the hosts that options name, else the hosts that a batch system grants.
 */
#include "option_sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEEPSPEED_HOSTFILE "/job/hostfile"

static ring_status from_slurm(const char *nodes, host_list *out)
{
    return hosts_parse_slurm(nodes, getenv("SLURM_TASKS_PER_NODE"), out);
}

static ring_status from_batch_system(host_list *out, const char **from)
{
    static const struct {
        const char *variable;
        ring_status (*read)(const char *value, host_list *out);
    } systems[] = {{"DLTS_HOSTFILE", hosts_read_file},
                   {"PBS_NODEFILE", hosts_read_pbs},
                   {"SLURM_JOB_NODELIST", from_slurm},
                   {"LSB_HOSTS", hosts_parse_words}};
    for (size_t i = 0; i < sizeof systems / sizeof systems[0]; i++) {
        *from = systems[i].variable;
        if (options_variable(*from) != NULL)
            return systems[i].read(getenv(*from), out);
    }
    *from = DEEPSPEED_HOSTFILE;
    if (access(*from, R_OK) == 0)
        return hosts_read_file(*from, out);
    *from = NULL;
    return hosts_add(out, "localhost", 9, 1) != NULL ? RING_OK : RING_ERR_CONFIG;
}

/* With --node-rank, the nodes are not reached from here, so they get made-up names. */
static ring_status unnamed_nodes(int nodes, host_list *out)
{
    for (int i = 0; i < nodes; i++) {
        char name[32];
        const int length = snprintf(name, sizeof name, "node%d", i);
        if (hosts_add(out, name, (size_t)length, 1) == NULL)
            return RING_ERR_CONFIG;
    }
    return RING_OK;
}

/* Parses the list in a variable. Some platforms write 'host1', 'host2', so quotes and blanks are
 * ignored. */
static ring_status from_variable(const char *name, host_list *out)
{
    const char *value = options_variable(name);
    if (value == NULL)
        return fail(RING_ERR_CONFIG, "--hostfile env:%s: the variable is not set", name);
    char *names = memory_text(value, strlen(value)), *to = names;
    for (const char *at = value; *at != '\0'; at++) {
        if (strchr(" \t'\"", *at) == NULL)
            *to++ = *at;
    }
    *to = '\0';
    const ring_status status = hosts_parse_list(names, out);
    free(names);
    return status;
}

static ring_status find_hosts(const options *o, host_list *out, const char **from)
{
    *from = "--node-rank";
    if (o->node_rank >= 0)
        return unnamed_nodes(o->nodes, out);
    *from = "--hostfile";
    if (o->hostfile != NULL && strncmp(o->hostfile, "env:", 4) == 0)
        return from_variable(o->hostfile + 4, out);
    if (o->hostfile != NULL)
        return hosts_read_file(o->hostfile, out);
    *from = "-H";
    if (o->hosts != NULL)
        return hosts_parse_list(o->hosts, out);
    return from_batch_system(out, from);
}

ring_status options_hosts(const options *o, host_list *out, const char **from)
{
    RING_TRY(find_hosts(o, out, from));
    if (o->node_rank < 0)
        RING_TRY(hosts_unify(out));
    if (o->include != NULL)
        RING_TRY(hosts_include(out, o->include, *from == NULL));
    if (o->exclude != NULL)
        RING_TRY(hosts_exclude(out, o->exclude));
    return RING_OK;
}
