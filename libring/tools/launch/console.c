/* SPDX-License-Identifier: Apache-2.0
 * Splits the ranks' output into lines, labels them, and writes them to the user and to log files.
 */
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
    LAST_MAX = 200 /* bytes that are kept of a line */
};

/* Many programs write a line in parts (python -u: its end apart), which arrive sooner. */
#define UNFINISHED_SECONDS 0.1

typedef struct rank_output {
    bytes partial[STREAMS]; /* unfinished line            */
    int log;                /* -1: none                   */
    char last[LAST_MAX];    /* its latest line            */
} rank_output;

struct console {
    int count;
    rank_output *ranks; /* [count] */
    bool tag_all, has_logs;
    outlet outlets[STREAMS];
    bool merged;          /* both are one file: the first serves both, to keep lines whole */
    bool failed[STREAMS]; /* "cannot be written" was printed                               */
    double due[STREAMS];  /* when rank 0's unfinished line is shown                        */
    int latest;           /* rank of the latest line                                       */
};

static outlet *outlet_of(console *c, int stream)
{
    return &c->outlets[c->merged ? 0 : stream - 1];
}

/* A reader that has left is no loss; any other error is. */
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
        return fail(RING_ERR_CONFIG, "making the log folder %s: %m", folder);
    for (int rank = 0; rank < c->count; rank++) {
        char path[4096];
        if (!text_format(path, sizeof path, "%s/rank_%d.log", folder, rank))
            return fail(RING_ERR_CONFIG, "the path of the log folder is too long");
        c->ranks[rank].log = output_create(path);
        if (c->ranks[rank].log < 0)
            return fail(RING_ERR_CONFIG, "log file %s: %m", path);
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

/* A full disk must not end the training: the log is closed. */
static void write_log(console *c, int rank, const char *data, size_t count)
{
    int *log = &c->ranks[rank].log;
    while (*log >= 0 && count > 0) {
        const ssize_t put = write(*log, data, count);
        if (put <= 0) {
            console_say(c, "the log file of rank %d ends here: %m", rank);
            fd_close(log);
            return;
        }
        data += put;
        count -= (size_t)put;
    }
}

/* All bytes up to the last line end; all of them when it grew too long or `rest` is wanted. */
static size_t complete_bytes(const bytes *line, bool rest)
{
    const char *head = bytes_head(line);
    const size_t count = bytes_count(line);
    const char *last = count > 0 ? memrchr(head, '\n', count) : NULL;
    if (rest || (last == NULL && count >= LINE_MAX_BYTES))
        return count;
    return last != NULL ? (size_t)(last + 1 - head) : 0;
}

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

/* Keeps the last line that is not empty. */
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

/* Rank 0's streams are one owner, as at a terminal. The rest of its line waits here for its end,
 * unless its beginning was written already: a block of stdio ends anywhere, so the end may come
 * late, and other ranks may write before it. */
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
        outlet_put(o, owner, "", "\n", 1); /* the missing end of its last line */
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

/* A prompt, or a progress line. It waits while another rank's long line is unfinished. */
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

/* A full disk must not end the training. */
static void tell_error(console *c, int index)
{
    static const char *const names[STREAMS] = {"standard output", "standard error"};
    if (c->failed[index] || !lost(&c->outlets[index]))
        return;
    c->failed[index] = true;
    console_say(c, "%s: %s; the ranks continue, but their output there is lost", names[index],
                strerror(c->outlets[index].error));
}

void console_watch(console *c, poll_set *set)
{
    for (int i = 0; i < STREAMS; i++)
        outlet_watch(&c->outlets[i], set);
}

void console_tick(console *c)
{
    for (int i = 0; i < STREAMS; i++) {
        tell_error(c, i);
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
