/* SPDX-License-Identifier: Apache-2.0
 *
 * run_options: parses ringrun's command line and finds the hosts that it names. Options of
 * torchrun, deepspeed and mpirun with the same meaning are accepted; unsupported ones are an error
 * with a suggestion, never ignored.
 */
#ifndef LAUNCH_OPTIONS_H
#define LAUNCH_OPTIONS_H

#include "job.h"
#include "layout.h"

typedef struct options {
    int ranks, per_node, nodes; /* 0: not said                                   */
    int node_rank;              /* -1: not said; else only this node's ranks run */
    const char *config_file;    /* accelerate's */
    struct yaml_subset *config; /* its content, which texts here may point into; NULL: none */
    const char *hostfile, *hosts, *include, *exclude;
    const char *master_addr;
    int master_port, ssh_port;  /* 0: not said */
    const char *remote_ringrun; /* path there  */
    const char *log_dir;
    bool tag_output, dry_run, no_ssh;
    bool elastic; /* given, and noted as without effect */
    job_binding binding;
    int kill_wait;  /* seconds from a passed signal to SIGKILL */
    texts exports;  /* NAME=VALUE  */
    char **program; /* its name and arguments, ended by NULL */
} options;

/** Reads the command line. Ends the program with 2 for a wrong one, and after --help. */
void options_parse(int argc, char **argv, options *out);
void options_free(options *o);

/** The hosts that the options or a batch system name, else this one.
 *  @param[out] from  the list's origin, for messages; NULL: neither named any. */
ring_status options_hosts(const options *o, host_list *out, const char **from);

#endif
