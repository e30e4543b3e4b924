/* SPDX-License-Identifier: Apache-2.0
 * Reads the lines of .deepspeed_env files and adds their variables to the exports. */
#include "env_file.h"

#include "job.h"
#include "text_lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usual_name[] = ".deepspeed_env";

/* The variables of one file, while it is read. */
typedef struct taken {
    texts *exports;
    int count;
} taken;

static ring_status take_line(void *context, char *line)
{
    taken *t = context;
    char *name = memory_text(line, strcspn(line, "="));
    const bool good = job_is_variable(name) && strchr(line, '=') != NULL;
    const char *wrong = good ? job_decides(name) : "expected NAME=VALUE";
    free(name);
    if (wrong != NULL)
        return fail(RING_ERR_CONFIG, "%s", wrong);
    texts_put(t->exports, line);
    t->count++;
    return RING_OK;
}

/* Adds the variables of a file to the exports. @param needed  a missing file is an error. */
static ring_status take_file(const char *path, bool needed, texts *exports)
{
    taken t = {.exports = exports};
    FILE *file = fopen(path, "re");
    if (file == NULL && errno == ENOENT && !needed)
        return RING_OK;
    if (file == NULL)
        return fail(RING_ERR_CONFIG, "cannot read %s: %m", path);
    const ring_status status = lines_each(file, path, take_line, &t);
    fclose(file);
    if (status == RING_OK)
        fprintf(stderr, "ringrun: all ranks get %d variable%s from %s\n", t.count, plural(t.count),
                path);
    return status;
}

/* @return true if the current folder is the home folder. */
static bool is_home(const char *home)
{
    char *here = realpath(".", NULL), *there = realpath(home, NULL);
    const bool same = here != NULL && there != NULL && strcmp(here, there) == 0;
    free(here);
    free(there);
    return same;
}

ring_status env_file_take(texts *exports)
{
    char path[4096];
    const char *named = getenv("DS_ENV_FILE"), *home = getenv("HOME");
    if (named != NULL && named[0] != '\0')
        return take_file(named, true, exports);
    if (home != NULL && !is_home(home) && text_format(path, sizeof path, "%s/%s", home, usual_name))
        RING_TRY(take_file(path, false, exports));
    return take_file(usual_name, false, exports);
}
