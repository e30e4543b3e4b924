/* SPDX-License-Identifier: Apache-2.0
 * Files are memory files, so that a million of them cost no disk. */
#include "give.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 256, FOLDERS = 4 };

/* ---- Files ---------------------------------------------------------------------- */

static int memory_file(size_t place)
{
    static int files[GIVE_FILES] = {-1, -1};
    if (files[place] < 0)
        files[place] = memfd_create("fuzz", MFD_CLOEXEC);
    must(files[place] >= 0);
    return files[place];
}

int give_fd(size_t place, const void *bytes, size_t size)
{
    const int fd = memory_file(place);
    must(ftruncate(fd, 0) == 0 && pwrite(fd, bytes, size, 0) == (ssize_t)size);
    return fd;
}

const char *give_file(size_t place, const void *bytes, size_t size)
{
    static char paths[GIVE_FILES][PATH_BYTES];
    (void)text_format(paths[place], PATH_BYTES, "/proc/self/fd/%d", give_fd(place, bytes, size));
    return paths[place];
}

/* ---- Folders -------------------------------------------------------------------- */

static char folders[FOLDERS][PATH_BYTES];
static size_t folder_count;

static void remove_folders(void)
{
    char command[PATH_BYTES + 16];
    for (size_t i = 0; i < folder_count; i++)
        if (text_format(command, sizeof command, "rm -rf '%s'", folders[i]) && system(command) != 0)
            fprintf(stderr, "%s is left behind\n", folders[i]);
    folder_count = 0;
}

const char *give_folder(const char *const *inside)
{
    char path[2 * PATH_BYTES];
    char *folder = folders[folder_count];
    must(folder_count < FOLDERS);
    (void)text_format(folder, PATH_BYTES, "/tmp/ring-fuzz-XXXXXX");
    must(mkdtemp(folder) != NULL);
    if (folder_count++ == 0)
        atexit(remove_folders);
    for (; inside != NULL && *inside != NULL; inside++) {
        (void)text_format(path, sizeof path, "%s/%s", folder, *inside);
        must(mkdir(path, 0700) == 0);
    }
    return folder;
}

void give_link(const char *folder, const char *name, size_t place)
{
    char path[2 * PATH_BYTES];
    (void)text_format(path, sizeof path, "%s/%s", folder, name);
    must(symlink(give_file(place, "", 0), path) == 0);
}

/* ---- Lines ---------------------------------------------------------------------- */

give_lines give_text(const unsigned char *bytes, size_t size)
{
    give_lines lines = {.text = calloc(size + 2, 1)}; /* getenv() reads two letters at once */
    size_t count = 0;
    must(lines.text != NULL);
    memcpy(lines.text, bytes, size);
    for (char *at = lines.text; at != NULL && count < GIVE_LINES;)
        lines.line[count++] = strsep(&at, "\n");
    return lines;
}

void give_free(give_lines *lines)
{
    free(lines->text);
}

/* ---- Connections ---------------------------------------------------------------- */

void give_pair(int ends[2])
{
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
}

bool give_sent(int end, const void *bytes, size_t size)
{
    return size == 0 || send(end, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size;
}

void give_close(int ends[2])
{
    fd_close(&ends[0]);
    fd_close(&ends[1]);
}
