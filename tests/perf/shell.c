/* SPDX-License-Identifier: Apache-2.0
 *
 * shell: through popen(), so quoting and redirection are the shell's.
 */
#include "shell.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

char shell_said[1 << 16];
static char file_name[64];

int shell(const char *format, ...)
{
    char command[1024], both[1100];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    snprintf(both, sizeof both, "( %s ) 2>&1 </dev/null", command);
    FILE *pipe = popen(both, "re");
    if (!pipe)
        return -1;
    const size_t used = fread(shell_said, 1, sizeof shell_said - 1, pipe);
    shell_said[used] = '\0';
    const int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

size_t shell_count(const char *text)
{
    size_t count = 0;
    for (const char *at = shell_said; (at = strstr(at, text)); at++)
        count++;
    return count;
}

static size_t split(char *line, char **words, size_t most)
{
    char *rest = NULL;
    size_t count = 0;
    for (char *word = strtok_r(line, " ", &rest); word && count < most;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    return count;
}

size_t shell_rows(void (*row)(char **words, size_t count))
{
    static char copy[sizeof shell_said];
    size_t rows = 0;
    char *rest = NULL, *words[64];
    memcpy(copy, shell_said, sizeof copy);
    for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (*line == '#')
            continue;
        row(words, split(line, words, 64));
        rows++;
    }
    return rows;
}

const char *shell_file(void)
{
    snprintf(file_name, sizeof file_name, "/tmp/ringperf-test-XXXXXX");
    const int fd = mkstemp(file_name);
    if (fd >= 0)
        close(fd);
    return file_name;
}

void shell_forget(void)
{
    unlink(file_name);
}

bool shell_replaces_link(const char *command)
{
    const char *other = shell_file();
    const int status =
        shell("ln -s %s %s.link && %s %s.link >/dev/null && stat -c %%a-%%F %s.link && "
              "stat -c %%s-bytes %s; rm -f %s.link",
              other, other, command, other, other, other, other);
    shell_forget();
    return status == 0 && strcmp(shell_said, "600-regular file\n0-bytes\n") == 0;
}

int shell_json_lines(const char *file, void (*line)(const cJSON *object))
{
    char text[4096];
    int lines = 0;
    FILE *in = fopen(file, "re");
    if (!in)
        return -1;
    for (; lines >= 0 && fgets(text, sizeof text, in); lines++) {
        cJSON *object = cJSON_ParseWithOpts(text, NULL, 0);
        if (!object) {
            lines = -1;
            break;
        }
        line(object);
        cJSON_Delete(object);
    }
    fclose(in);
    return lines;
}
