/* SPDX-License-Identifier: Apache-2.0
 * Keys of "accelerate config"'s YAML file about the start of processes. */
#include "run_options.h"

#include "args.h"
#include "numbers.h"
#include "yaml_subset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PORT_MAX = 65535 };

static void read_file(const char *path, yaml_subset *yaml)
{
    char *text = memory_grow(NULL, YAML_FILE_MAX + 1, 1);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        args_fail("--config_file %s: %s", path, strerror(errno));
    const size_t length = fread(text, 1, YAML_FILE_MAX + 1, file);
    if (ferror(file) || length > YAML_FILE_MAX)
        args_fail("--config_file %s: %s", path,
                  length > YAML_FILE_MAX ? "too large for such a file" : "cannot be read");
    fclose(file);
    if (!yaml_read(yaml, text, length))
        args_fail("%s:%zu:%zu: %s", path, yaml->line, yaml->column, yaml->problem);
    free(text);
}

/* @return the number at @p key, or @p missing. */
static int number_at(const options *o, const yaml_subset *yaml, const char *key, int least,
                     int most, int missing)
{
    const yaml_entry *entry = yaml_find(yaml, "", key);
    long long value;
    if (entry == NULL || yaml_is_null(entry))
        return missing;
    if (!number_whole(entry->value, least, most, &value))
        args_fail("%s: %s: expected a whole number from %d to %d, not '%s'", o->config_file, key,
                  least, most, entry->value);
    return (int)value;
}

/* Every machine is started with the same file, and a number of its own. */
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
        o->master_addr = memory_text(address->value, strlen(address->value));
    if (o->master_port == 0)
        o->master_port = number_at(o, yaml, "main_process_port", 1, PORT_MAX, 0);
}

static bool names_hosts(const options *o)
{
    return o->hosts != NULL || o->hostfile != NULL || o->include != NULL || o->exclude != NULL;
}

void options_take_accelerate(options *o)
{
    if (o->config_file == NULL)
        return;
    yaml_subset *yaml = memory_grow(NULL, 1, sizeof *yaml);
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
            fprintf(stderr, "ringrun: num_processes is %d, on %ld cores: ranks share them\n",
                    processes, machines * cores);
    }
    free(yaml);
}
