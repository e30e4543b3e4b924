/* SPDX-License-Identifier: Apache-2.0
 * Splits the output of ranks into lines, puts the rank before them, and passes them to the outlets
 * of standard output and standard error, and to log files. */
#include "console.h"

#include "output.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINE_MAX_BYTES = 65536,
    STREAMS = 2,
    PREFIX_MAX = 24,
    STDIO_BLOCK = 4096,
    LAST_MAX = 200 /* bytes that are kept of a rank's last line */
};

/* Many programs write a line in several parts, which usually arrive within this time: python -u
 * writes the newline separately. */
#define UNFINISHED_SECONDS 0.1

typedef struct rank_output {
    bytes partial[STREAMS]; /* an unfinished line         */
    int log;                /* its log file; -1: none     */
    char last[LAST_MAX];    /* its latest complete line   */
} rank_output;

struct console {
    int count;
    rank_output *ranks; /* [count] */
    bool tag_all, has_logs;
    outlet outlets[STREAMS];
    bool merged;          /* both streams are one file: the first outlet serves both, so that
                             lines stay whole */
    bool failed[STREAMS]; /* the error of the outlet was printed                           */
    double due[STREAMS];  /* time at which rank 0's unfinished line is shown               */
    int latest;           /* rank that printed the latest line                             */
};

static outlet *outlet_of(console *c, int stream)
{
    return &c->outlets[c->merged ? 0 : stream - 1];
}

/* @return true if output was lost. Output without a reader (EPIPE) is not a loss. */
static bool lost(const outlet *o)
{
    return o->error != 0 && o->error != EPIPE;
}

/* @return true if both descriptors refer to the same file. */
static bool same_file(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino &&
           x.st_rdev == y.st_rdev;
}

static ring_status open_logs(console *c, const char *folder)
{
    c->has_logs = true;
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return fail(RING_ERR_CONFIG, "cannot create the log folder %s: %m", folder);
    for (int rank = 0; rank < c->count; rank++) {
        char path[4096];
        if (!text_format(path, sizeof path, "%s/rank_%d.log", folder, rank))
            return fail(RING_ERR_CONFIG, "the path of the log folder is too long");
        c->ranks[rank].log = output_create(path);
        if (c->ranks[rank].log < 0)
            return fail(RING_ERR_CONFIG, "cannot create the log file %s: %m", path);
    }
    return RING_OK;
}

void console_close(console *c)
{
    for (int rank = 0; rank < c->count; rank++) {
        for (int i = 0; i < STREAMS; i++)
            bytes_free(&c->ranks[rank].partial[i]);
        fd_close(&c->ranks[rank].log);
    }
    for (int i = 0; i < STREAMS; i++)
        bytes_free(&c->outlets[i].waiting);
    free(c->ranks);
    free(c);
}

ring_status console_open(int ranks, bool tag_all, const char *logs, console **out)
{
    console *c = memory_zeroed(1, sizeof *c);
    *c = (console){.count = ranks,
                   .ranks = memory_zeroed((size_t)ranks, sizeof *c->ranks),
                   .tag_all = tag_all,
                   .outlets = {{.fd = STDOUT_FILENO}, {.fd = STDERR_FILENO}},
                   .merged = same_file(STDOUT_FILENO, STDERR_FILENO),
                   .due = {HUGE_VAL, HUGE_VAL}};
    for (int rank = 0; rank < ranks; rank++)
        c->ranks[rank].log = -1;
    const ring_status status = logs != NULL ? open_logs(c, logs) : RING_OK;
    if (status == RING_OK)
        *out = c;
    else
        console_close(c);
    return status;
}

bool console_passes(const console *c, int stream)
{
    return !c->tag_all && !c->has_logs && isatty(stream);
}

bool console_ready(const console *c, int stream)
{
    return !outlet_full(&c->outlets[c->merged ? 0 : stream - 1]);
}

/* Closes the log after an error, since a full disk must not end the training. */
static void write_log(console *c, int rank, const char *data, size_t count)
{
    int *log = &c->ranks[rank].log;
    while (*log >= 0 && count > 0) {
        const ssize_t put = write(*log, data, count);
        if (put <= 0) {
            console_say(c, "cannot write to the log file of rank %d any more: %m", rank);
            fd_close(log);
            return;
        }
        data += put;
        count -= (size_t)put;
    }
}

/* @return the number of bytes up to the last newline; all bytes if the line is too long or if @p
 * rest. */
static size_t complete_bytes(const bytes *line, bool rest)
{
    const char *head = bytes_head(line);
    const size_t count = bytes_count(line);
    const char *last = count > 0 ? memrchr(head, '\n', count) : NULL;
    if (rest || (last == NULL && count >= LINE_MAX_BYTES))
        return count;
    return last != NULL ? (size_t)(last + 1 - head) : 0;
}

/* Puts each line into the outlet. @param owner  the writer of these lines. */
static void put_lines(outlet *o, const void *owner, const char *prefix, const char *data,
                      size_t count)
{
    while (count > 0) {
        const char *end = memchr(data, '\n', count);
        const size_t length = end != NULL ? (size_t)(end + 1 - data) : count;
        outlet_put(o, owner, prefix, data, length);
        data += length;
        count -= length;
    }
}

/* Stores the last line that is not empty, for console_last_line(). */
static void note_last(console *c, int rank, const char *data, size_t count)
{
    while (count > 0 && (data[count - 1] == '\n' || data[count - 1] == '\r'))
        count--;
    const char *before = count > 0 ? memrchr(data, '\n', count) : NULL;
    const size_t start = before != NULL ? (size_t)(before + 1 - data) : 0;
    if (count == start)
        return;
    snprintf(c->ranks[rank].last, LAST_MAX, "%.*s", (int)min_size(count - start, LAST_MAX),
             data + start);
    c->latest = rank;
}

/* Passes complete lines to the outlet; all bytes if @p count is 0, the end of the stream. Rank 0's
 * two streams are one owner, as they are at a terminal. An unfinished line waits here for its end.
 * Rank 0's line does not wait if its beginning was already passed on, or for longer than
 * UNFINISHED_SECONDS. If @p count is a multiple of stdio's block, the program's buffer was full and
 * more bytes will come, perhaps late; then there is no such limit. */
static void put_ready(console *c, int rank, int stream, size_t count)
{
    const bool plain = rank == 0 && !c->tag_all;
    bytes *line = &c->ranks[rank].partial[stream - 1];
    const void *owner = plain ? (const void *)c->ranks : line;
    outlet *o = outlet_of(c, stream);
    const size_t ready = complete_bytes(line, count == 0 || (plain && o->open == owner));
    char prefix[PREFIX_MAX] = "";
    if (!plain)
        snprintf(prefix, sizeof prefix, "[%d] ", rank);
    put_lines(o, owner, prefix, bytes_head(line), ready);
    note_last(c, rank, bytes_head(line), ready);
    bytes_drop(line, ready);
    if (!plain && count == 0 && o->open == owner)
        outlet_put(o, owner, "", "\n", 1); /* end its last line */
    if (plain)
        c->due[stream - 1] = bytes_count(line) > 0 && count % STDIO_BLOCK != 0
                                 ? clock_now() + UNFINISHED_SECONDS
                                 : HUGE_VAL;
}

bool console_output(console *c, int rank, int stream, const char *data, size_t count)
{
    write_log(c, rank, data, count);
    bytes_add(&c->ranks[rank].partial[stream - 1], data, count);
    put_ready(c, rank, stream, count);
    return outlet_of(c, stream)->error != EPIPE || c->has_logs;
}

const char *console_last_line(const console *c, int rank)
{
    const char *last = c->ranks[rank].last;
    return strcmp(last, c->ranks[c->latest].last) != 0 ? last : "";
}

/* Shows rank 0's unfinished line, such as a prompt or a progress line, when it is due. Waits longer
 * while a long line of another rank is unfinished. */
static void show_unfinished(console *c, int stream)
{
    outlet *o = outlet_of(c, stream);
    bytes *line = &c->ranks[0].partial[stream - 1];
    if (clock_now() < c->due[stream - 1])
        return;
    if (o->open != NULL && o->open != c->ranks) {
        c->due[stream - 1] = clock_now() + UNFINISHED_SECONDS;
        return;
    }
    outlet_put(o, c->ranks, "", bytes_head(line), bytes_count(line));
    bytes_drop(line, bytes_count(line));
    c->due[stream - 1] = HUGE_VAL;
}

void console_host(console *c, const char *host, const char *line, size_t length)
{
    char text[1200];
    snprintf(text, sizeof text, "[%s] %.*s\n", host, (int)min_size(length, 1000), line);
    outlet_put(outlet_of(c, STDERR_FILENO), NULL, "", text, strlen(text));
}

void console_say(console *c, const char *format, ...)
{
    char text[2048] = "ringrun: ";
    const size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, sizeof text - used - 1, format, args);
    va_end(args);
    strcat(text, "\n");
    outlet_put(outlet_of(c, STDERR_FILENO), NULL, "", text, strlen(text));
}

void console_watch(console *c, poll_set *set)
{
    for (int i = 0; i < STREAMS; i++)
        outlet_watch(&c->outlets[i], set);
}

void console_tick(console *c)
{
    static const char *const names[STREAMS] = {"standard output", "standard error"};
    for (int i = 0; i < STREAMS; i++) {
        if (!c->failed[i] && lost(&c->outlets[i])) {
            c->failed[i] = true; /* a full disk must not end the training */
            console_say(c, "%s: %s; the ranks continue, but their output there is lost", names[i],
                        strerror(c->outlets[i].error));
        }
        show_unfinished(c, i + 1);
    }
}

double console_due(const console *c)
{
    return fmin(c->due[0], c->due[1]);
}

bool console_waits(const console *c)
{
    return bytes_count(&c->outlets[0].waiting) > 0 || bytes_count(&c->outlets[1].waiting) > 0;
}

bool console_lost(const console *c)
{
    return lost(&c->outlets[0]) || lost(&c->outlets[1]);
}
