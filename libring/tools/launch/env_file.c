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

/* Variables of one file. */
typedef struct taken {
    texts *exports;
    int count;
} taken;

/* @return the reason why @p line is not a variable for ranks; NULL: it is one. */
static const char *wrong_with(const char *line)
{
    char *name = memory_text(line, strcspn(line, "="));
    const bool good = job_is_variable(name) && strchr(line, '=') != NULL;
    const char *wrong = good ? job_decides(name) : "expected NAME=VALUE";
    free(name);
    return wrong;
}

static ring_status take_line(void *context, char *line)
{
    taken *t = context;
    const char *wrong = wrong_with(line);
    if (wrong != NULL)
        return fail(RING_ERR_CONFIG, "%s", wrong);
    texts_put(t->exports, line);
    t->count++;
    return RING_OK;
}

/* @param needed  a missing file is an error. */
static ring_status take_file(const char *path, bool needed, texts *exports)
{
    taken t = {.exports = exports};
    FILE *file = fopen(path, "re");
    if (file == NULL && errno == ENOENT && !needed)
        return RING_OK;
    if (file == NULL)
        return fail(RING_ERR_CONFIG, "%s: %m", path);
    const ring_status status = lines_each(file, path, take_line, &t);
    fclose(file);
    if (status == RING_OK)
        fprintf(stderr, "ringrun: %d variable%s of %s for all ranks\n", t.count, plural(t.count),
                path);
    return status;
}

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
