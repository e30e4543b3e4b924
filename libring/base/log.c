/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes log lines to stderr. Each message is one line and is written by one write(), so that the
 * lines of several ranks do not mix.
 */
#include "base.h"

#include "numbers.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static _Atomic int log_threshold = LOG_WARN;
static _Thread_local int log_rank = -1, log_ranks;

void log_set_level(log_level level)
{
    log_threshold = (int)level;
}

bool log_level_parse(const char *name, log_level *level)
{
    for (int i = LOG_ERROR; i <= LOG_DEBUG; i++) {
        if (strcmp(name, level_names[i]) == 0) {
            *level = (log_level)i;
            return true;
        }
    }
    return false;
}

void log_set_rank(int rank, int ranks)
{
    log_rank = rank;
    log_ranks = ranks;
}

void log_at(log_level level, const char *format, ...)
{
    if ((int)level > log_threshold)
        return;
    NUMBERS_AS_IN_C;
    char line[1200];
    int used = log_ranks > 1 ? snprintf(line, sizeof line, "[ring r%d/%d] ", log_rank, log_ranks)
                             : snprintf(line, sizeof line, "[ring] ");
    used += snprintf(line + used, sizeof line - (size_t)used, "%s: ", level_names[level]);
    va_list args;
    va_start(args, format);
    const int body = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, args);
    va_end(args);
    size_t length = min_size((size_t)used + (size_t)(body > 0 ? body : 0), sizeof line - 2);
    line[length++] = '\n';
    const ssize_t ignored = write(STDERR_FILENO, line, length);
    (void)ignored; /* a failure cannot be reported anywhere */
}

#ifdef RING_CHECKED
void assertion_failed(const char *condition, const char *file, int line)
{
    log_error("%s:%d: assertion failed: %s; this is a bug in libring", file, line, condition);
    abort();
}
#endif
