/* SPDX-License-Identifier: Apache-2.0
 * Searches PATH and ringrun's folder for programs, and describes why a program cannot be
 * started. */
#include "command_lookup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CODE_TROUBLE = 3, CODE_NOT_FOUND = 127 };

/* @return true if the path is a file that this user may execute; false, and errno, if not. */
static bool may_run(const char *path)
{
    struct stat file;
    if (stat(path, &file) != 0 || access(path, X_OK) != 0)
        return false;
    if (S_ISREG(file.st_mode))
        return true;
    errno = EACCES;
    return false;
}

bool command_own_path(char *out, size_t size)
{
    const ssize_t length = readlink("/proc/self/exe", out, size - 1);
    out[length > 0 ? length : 0] = '\0';
    return length > 0;
}

bool command_find(const char *name, char *out, size_t size)
{
    const char *path = getenv("PATH");
    char self[4096];
    if (strchr(name, '/') != NULL)
        return text_format(out, size, "%s", name) && may_run(out);
    for (const char *at = path != NULL ? path : "/usr/bin:/bin"; *at != '\0';) {
        const int length = (int)strcspn(at, ":");
        if (text_format(out, size, "%.*s%s%s", length, at, length > 0 ? "/" : "./", name) &&
            may_run(out))
            return true;
        at += length + (at[length] == ':');
    }
    if (command_own_path(self, sizeof self)) {
        *strrchr(self, '/') = '\0';
        if (text_format(out, size, "%s/%s", self, name) && may_run(out))
            return true;
    }
    errno = ENOENT;
    return false;
}

/* @return true if the host lacks resources, so that the error does not concern the program. */
static bool out_of_resources(int error)
{
    return error == EMFILE || error == ENFILE || error == EAGAIN || error == ENOMEM;
}

bool command_is_python(const char *name)
{
    static const char *const words[] = {"deepspeed", "torchrun", "accelerate", "deepy.py"};
    const char *slash = strrchr(name, '/');
    const char *base = slash != NULL ? slash + 1 : name;
    const size_t length = strlen(base);
    bool known = length > 3 && strcmp(base + length - 3, ".py") == 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        known = known || strcmp(base, words[i]) == 0;
    return known;
}

/* @return the remedy for an error, or "". */
static const char *advice(const char *name, int error)
{
    if (!out_of_resources(error) && command_is_python(name))
        return "; ringtrain replaces DeepSpeed training scripts: ringrun -n N ringtrain "
               "--deepspeed_config FILE --data DIR (other scripts: python3 SCRIPT.py)";
    if (out_of_resources(error))
        return "; raise the limits (ulimit -n, ulimit -u), or start fewer ranks";
    if (error == ENOENT && strchr(name, '/') == NULL)
        return "; it is neither in PATH nor in the folder of ringrun; give its path";
    return error == EACCES ? "; make it executable (chmod +x), or start its interpreter" : "";
}

int command_error_code(int error)
{
    return out_of_resources(error) ? CODE_TROUBLE : CODE_NOT_FOUND;
}

void command_describe_error(const char *name, int error, char *out, size_t size)
{
    snprintf(out, size, "could not start '%.150s': %s%s", name, strerror(error),
             advice(name, error));
}
