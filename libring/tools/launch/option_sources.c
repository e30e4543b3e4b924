/* SPDX-License-Identifier: Apache-2.0
 * Takes options that the command line does not have from accelerate's configuration file and from
 * environment variables. */
#include "option_sources.h"

#include "args.h"
#include "numbers.h"
#include "yaml_subset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PORT_MAX = 65535 };

const char *options_variable(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

/* ---- The configuration file of accelerate ------------------------------------ */

static void read_file(const char *path, yaml_subset *yaml)
{
    char *text = memory_grow(NULL, YAML_FILE_MAX + 1, 1);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        args_fail("--config_file %s: %s", path, strerror(errno));
    const size_t length = fread(text, 1, YAML_FILE_MAX + 1, file);
    if (ferror(file) || length > YAML_FILE_MAX)
        args_fail("--config_file %s: %s", path,
                  length > YAML_FILE_MAX ? "the file is larger than 64 KiB" : "cannot be read");
    fclose(file);
    if (!yaml_read(yaml, text, length))
        args_fail("%s:%zu:%zu: %s", path, yaml->line, yaml->column, yaml->problem);
    free(text);
}

/* @return the number at @p key, which must be from @p least to @p most; @p missing if there is
 * none. */
static int number_at(const options *o, const yaml_subset *yaml, const char *key, int least,
                     int most, int missing)
{
    const yaml_entry *entry = yaml_find(yaml, "", key);
    long long value;
    if (entry == NULL || yaml_is_null(entry) || strcmp(entry->value, "-1") == 0)
        return missing;
    if (!number_whole(entry->value, least, most, &value))
        args_fail("%s: %s: expected a whole number from %d to %d, not '%s'", o->config_file, key,
                  least, most, entry->value);
    return (int)value;
}

/* Sets the options of a job of several machines: the user starts ringrun on each machine, with the
 * same file except for the number of the machine. */
static void take_machines(options *o, const yaml_subset *yaml, int machines, int processes)
{
    const yaml_entry *address = yaml_find(yaml, "", "main_process_ip");
    if (processes % machines != 0)
        args_fail("%s: num_processes %d is not a multiple of num_machines %d", o->config_file,
                  processes, machines);
    o->nodes = machines;
    o->per_node = processes / machines;
    o->node_rank = number_at(o, yaml, "machine_rank", 0, HOSTS_MAX - 1, 0);
    if (o->master_addr == NULL && address != NULL && !yaml_is_null(address))
        o->master_addr = address->value;
    if (o->master_port == 0)
        o->master_port = number_at(o, yaml, "main_process_port", 1, PORT_MAX, 0);
}

/* @return true if options of the command line name hosts. */
static bool names_hosts(const options *o)
{
    return o->hosts != NULL || o->hostfile != NULL || o->include != NULL || o->exclude != NULL;
}

void options_take_accelerate(options *o)
{
    if (o->config_file == NULL)
        return;
    yaml_subset *yaml = o->config = memory_grow(NULL, 1, sizeof *yaml);
    read_file(o->config_file, yaml);
    const int processes = number_at(o, yaml, "num_processes", 1, RANKS_MAX, 0);
    const int machines = number_at(o, yaml, "num_machines", 1, HOSTS_MAX, 1);
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (o->ranks == 0 && o->per_node == 0) {
        if (processes == 0)
            args_fail("%s: num_processes is missing; write it, or give -n N", o->config_file);
        if (names_hosts(o) || machines == 1)
            o->ranks = processes;
        else
            take_machines(o, yaml, machines, processes);
        if (!names_hosts(o) && machines == 1)
            o->hosts = "localhost";
        if (processes > machines * cores && !names_hosts(o))
            fprintf(stderr,
                    "ringrun: num_processes is %d, more than the %ld core%s: ranks share cores\n",
                    processes, machines * cores, plural((double)(machines * cores)));
    }
}

/* ---- A platform's {"framework": "pytorch", "worker": {"count": 2, "gpus": 8}} --------------- */

/* @return the number at a name; -1 if there is none. Only this number is needed, so the rest of the
 * text is not parsed. */
static int number_of(const char *text, const char *name)
{
    int value = -1, skip = 0;
    const char *at = strstr(text, name);
    if (at == NULL || sscanf(at += strlen(name), " : %n", &skip) < 0 || skip == 0)
        return -1;
    at += skip;
    return hosts_number(&at, 0, RANKS_MAX, &value) ? value : -1;
}

/* Warns if the number of workers differs from WORLD_SIZE. */
static void compare_workers(int count)
{
    const char *nodes = getenv("WORLD_SIZE");
    if (count > 1 && nodes == NULL)
        fprintf(
            stderr,
            "ringrun: DC_DL_CONFIG names %d worker%s, but RANK and WORLD_SIZE are not set, so the "
            "number of this worker is unknown: starting ranks on this host only\n",
            count, plural(count));
    else if (count > 0 && nodes != NULL && atoi(nodes) != count)
        fprintf(stderr, "ringrun: DC_DL_CONFIG names %d worker%s, but WORLD_SIZE is %.20s\n", count,
                plural(count), nodes);
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
    fprintf(stderr, "ringrun: DC_DL_CONFIG has \"gpus\": %d; starting %d rank%s on each node\n",
            gpus, o->per_node, plural(o->per_node));
    compare_workers(number_of(text, "\"count\""));
}

/* ---- RANK and WORLD_SIZE of nodes ----------------------------------------------------------- */

/* Reads a whole number from @p low to HOSTS_MAX from a variable. @return false if there is none. */
static bool small_number(const char *name, int low, int *out)
{
    const char *text = options_variable(name);
    return text != NULL && hosts_number(&text, low, HOSTS_MAX, out) && *text == '\0';
}

void options_take_node_variables(options *o)
{
    int nodes, node;
    if (o->per_node == 0 || o->nodes > 0 || o->node_rank >= 0 || o->hosts != NULL ||
        o->hostfile != NULL || options_variable("LOCAL_RANK") != NULL ||
        !small_number("WORLD_SIZE", 2, &nodes) || !small_number("RANK", 0, &node) || node >= nodes)
        return;
    o->nodes = nodes;
    o->node_rank = node;
    if (o->master_addr == NULL)
        o->master_addr = options_variable("MASTER_ADDR");
    if (o->master_port == 0)
        small_number("MASTER_PORT", 1, &o->master_port);
    fprintf(stderr,
            "ringrun: RANK=%d and WORLD_SIZE=%d without LOCAL_RANK are taken as this node's number "
            "and the number of nodes\n",
            node, nodes);
}
