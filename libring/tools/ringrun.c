/* SPDX-License-Identifier: Apache-2.0
 * ringrun: starts the ranks of a job. For ranks on other hosts, it runs `ringrun --remote-child`
 * there through ssh; users do not give this option. */
#include "remote_child.h"
#include "run_job.h"
#include "run_options.h"

#include <string.h>

int main(int argc, char **argv)
{
    options o;
    if (argc == 2 && strcmp(argv[1], "--remote-child") == 0)
        return remote_child();
    options_parse(argc, argv, &o);
    const int code = run_job(&o);
    options_free(&o);
    return code;
}
