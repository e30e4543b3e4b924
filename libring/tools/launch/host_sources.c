/* SPDX-License-Identifier: Apache-2.0
 * The hosts for ranks: named by options, else granted by a batch system. */
#include "run_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEEPSPEED_HOSTFILE "/job/hostfile"

/* A variable that is set and not empty. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

static ring_status from_slurm(host_list *out, const char **from)
{
    *from = "SLURM_JOB_NODELIST";
    return hosts_parse_slurm(variable(*from), variable("SLURM_TASKS_PER_NODE"), out);
}

static ring_status from_batch_system(host_list *out, const char **from)
{
    *from = "DLTS_HOSTFILE";
    if (variable(*from) != NULL)
        return hosts_read_file(variable(*from), out);
    *from = "PBS_NODEFILE";
    if (variable(*from) != NULL)
        return hosts_read_pbs(variable(*from), out);
    if (variable("SLURM_JOB_NODELIST") != NULL)
        return from_slurm(out, from);
    *from = "LSB_HOSTS";
    if (variable(*from) != NULL)
        return hosts_parse_words(variable(*from), out);
    *from = DEEPSPEED_HOSTFILE;
    if (access(*from, R_OK) == 0)
        return hosts_read_file(*from, out);
    *from = NULL;
    return hosts_add(out, "localhost", 9, 1) != NULL ? RING_OK : RING_ERR_CONFIG;
}

/* Nodes started by others have no names here, and need none. */
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

/* Platforms write 'host1', 'host2'. */
static ring_status from_variable(const char *name, host_list *out)
{
    const char *value = variable(name);
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
    if (o->include != NULL)
        RING_TRY(hosts_include(out, o->include, *from == NULL));
    if (o->exclude != NULL)
        RING_TRY(hosts_exclude(out, o->exclude));
    return RING_OK;
}

static bool small_number(const char *text, int low, int *out)
{
    return text != NULL && hosts_number(&text, low, HOSTS_MAX, out) && *text == '\0';
}

bool options_take_node_variables(options *o)
{
    int nodes, node;
    if (o->per_node == 0 || o->nodes > 0 || o->node_rank >= 0 || o->hosts != NULL ||
        o->hostfile != NULL || variable("LOCAL_RANK") != NULL)
        return false;
    if (!small_number(getenv("WORLD_SIZE"), 2, &nodes) || !small_number(getenv("RANK"), 0, &node) ||
        node >= nodes)
        return false;
    o->nodes = nodes;
    o->node_rank = node;
    if (o->master_addr == NULL)
        o->master_addr = variable("MASTER_ADDR");
    if (o->master_port == 0 && !small_number(variable("MASTER_PORT"), 1, &o->master_port))
        o->master_port = 0;
    fprintf(stderr,
            "ringrun: RANK=%d and WORLD_SIZE=%d without LOCAL_RANK are taken as this node's number "
            "and the number of nodes\n",
            node, nodes);
    return true;
}
