/* SPDX-License-Identifier: Apache-2.0
 * ringrun: starts the ranks of a job. On other hosts the same program runs at the far end of an ssh
 * connection, started only by the ringrun at the near end. */
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
