/* SPDX-License-Identifier: Apache-2.0
 * The options by name, and what --help says of them. */
#ifndef LAUNCH_OPTIONS_TABLE_H
#define LAUNCH_OPTIONS_TABLE_H

#include <argp.h>

enum key {
    KEY_PER_NODE = 1000,
    KEY_NODES,
    KEY_NODE_RANK,
    KEY_MASTER_ADDR,
    KEY_MASTER_PORT,
    KEY_INCLUDE,
    KEY_EXCLUDE,
    KEY_SSH_PORT,
    KEY_LAUNCHER,
    KEY_REMOTE_RINGRUN,
    KEY_BIND,
    KEY_LOGS,
    KEY_TAG,
    KEY_DRY_RUN,
    KEY_MEANT_ANYWAY,
    KEY_HOSTFILE,
    KEY_STANDALONE,
    KEY_NO_SSH,
    KEY_BIND_CORES,
    KEY_KILL_WAIT
};

/** Ended by an entry of zeros. Names have dashes; options_parse() takes '_' for them. */
extern const struct argp_option options_table[];
extern const char options_doc[];

#endif
