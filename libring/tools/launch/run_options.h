/* SPDX-License-Identifier: Apache-2.0
 *
 * run_options: parses ringrun's command line and finds the hosts of the job. Options of torchrun,
 * deepspeed and mpirun are accepted if ringrun can do the same; an unsupported option is an error
 * with a suggestion and is never ignored.
 */
#ifndef LAUNCH_OPTIONS_H
#define LAUNCH_OPTIONS_H

#include "job.h"
#include "layout.h"

typedef struct options {
    int ranks, per_node, nodes; /* 0: not given                                    */
    int node_rank;              /* -1: not given; else only this node's ranks run   */
    const char *config_file;    /* accelerate's configuration file */
    struct yaml_subset *config; /* its content, to which members here may point; NULL: none */
    const char *hostfile, *hosts, *include, *exclude;
    const char *master_addr;
    int master_port, ssh_port;  /* 0: not given */
    const char *remote_ringrun; /* path of ringrun on the other hosts; NULL: its path here */
    const char *log_dir;
    bool tag_output, dry_run, no_ssh, nccl;
    bool elastic; /* elastic training was requested, and the notice was printed */
    job_binding binding;
    int kill_wait;  /* seconds from a signal that is passed on until SIGKILL */
    texts exports;  /* NAME=VALUE  */
    char **program; /* its name and arguments, ended by NULL */
} options;

/** Parses the command line, and the file and variables of option_sources.h. Ends the program after
 *  --help, or with status 2 if the command line is wrong. */
void options_parse(int argc, char **argv, options *out);
void options_free(options *o);

/** Finds the hosts that the options or a batch system name; if neither names any, this host.
 *  @param[out] out   the hosts, which the caller frees.
 *  @param[out] from  the source of the list, for messages; NULL: neither names any. */
ring_status options_hosts(const options *o, host_list *out, const char **from);

#endif
