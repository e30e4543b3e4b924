/* SPDX-License-Identifier: Apache-2.0
 * Texts that are to be shown, numbers, and the small files of the system. */
#include "give.h"

#include "cgroup.h"
#include "host_list.h"
#include "numbers.h"
#include "sysfs.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Texts ---------------------------------------------------------------------- */

static void seed_printable(fuzz_seeds *to)
{
    fuzz_add(to, "node1", 6);
    fuzz_add(to, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 \xc2\x85 \xed\xa0\x80\x1b[0m", 21);
    fuzz_add(to, "\xf0\x9f\x98", 3);
}

static ring_status parse_printable(const unsigned char *data, size_t size)
{
    if (size == 0)
        return RING_ERR_ARGUMENT;
    char *text = malloc(size), *again = malloc(size);
    must(text != NULL && again != NULL);
    memcpy(text, data, size);
    text_make_printable(text, size);
    must(memchr(text, '\0', size) != NULL && fuzz_is_printable(text));
    memcpy(again, text, size);
    text_make_printable(again, size);
    must(strcmp(text, again) == 0);
    free(text);
    free(again);
    return RING_OK;
}

const fuzz_target fuzz_printable = {.name = "printable",
                                    .reads = "texts of other ranks, before they are shown",
                                    .most = 256,
                                    .seeds = seed_printable,
                                    .parse = parse_printable};

/* ---- Numbers -------------------------------------------------------------------- */

static void seed_numbers(fuzz_seeds *to)
{
    static const char *const written[] = {"0",   "64",  "1.5M", "8GiB", "2.5",  "1e3",
                                          "-12", "3TB", "0.5K", "4kib", "65536"};
    for (size_t i = 0; i < sizeof written / sizeof *written; i++)
        fuzz_add_text(to, written[i]);
}

static bool is_whole(const char *text)
{
    long long number = -1;
    int slots = -1;
    const char *at = text;
    const bool accepted = number_whole(text, -1000, 100000, &number);
    must(!accepted || (number >= -1000 && number <= 100000));
    must(!accepted || number == strtoll(text, NULL, 10));
    must(!hosts_number(&at, 1, 65536, &slots) || (slots >= 1 && slots <= 65536 && at > text));
    return accepted;
}

static ring_status parse_numbers(const unsigned char *data, size_t size)
{
    const char *text = (const char *)data;
    size_t whole = 0;
    double real = -1;
    log_level level;
    const bool is_size = number_size(text, &whole), is_real = number_real(text, &real);
    must(!is_size || whole < (size_t)1 << 62);
    must(!is_real || (isfinite(real) && real >= 0));
    must(!log_level_parse(text, &level) || level <= LOG_DEBUG);
    return is_whole(text) || is_size || is_real ? RING_OK : RING_ERR_ARGUMENT;
}

const fuzz_target fuzz_numbers = {.name = "numbers",
                                  .reads = "sizes, counts and seconds of command lines",
                                  .most = 64,
                                  .text = true,
                                  .seeds = seed_numbers,
                                  .parse = parse_numbers};

/* ---- /proc and /sys ------------------------------------------------------------- */

static void seed_small_files(fuzz_seeds *to)
{
    fuzz_add_text(to, "MemAvailable:   12345 kB\n");
    fuzz_add_text(to, "200000 100000\n");
    fuzz_add_text(to, "MemTotal:       16384 kB\nMemFree: 1 kB\nMemAvailable:\t9 kB\n");
}

static ring_status parse_small_files(const unsigned char *data, size_t size)
{
    char line[64], value[16];
    const char *path = give_file(0, data, size);
    const bool has_line = sysfs_line(line, sizeof line, "%s", path);
    const bool has_value = sysfs_value(value, sizeof value, "MemAvailable", "%s", path);
    const long number = sysfs_number(-7, "%s", path);
    must(strchr(line, '\n') == NULL && strchr(value, '\n') == NULL);
    must(has_line || (line[0] == '\0' && number == -7));
    must(has_value || value[0] == '\0');
    return has_line ? RING_OK : RING_ERR_SYSTEM;
}

const fuzz_target fuzz_small_files = {.name = "small_files",
                                      .reads = "files of /proc and /sys",
                                      .most = 8192,
                                      .seeds = seed_small_files,
                                      .parse = parse_small_files};

/* The contents of /proc/self/cgroup, an empty line, the contents of /proc/self/mountinfo. */
static void seed_cgroups(fuzz_seeds *to)
{
    fuzz_add_text(to, "0::/user/job\n\n31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    fuzz_add_text(to, "7:memory,cpu:/docker/a/b\n0::/\n\n"
                      "31 23 0:28 /docker /cg/memory rw,nosuid - cgroup cgroup rw,memory\n");
    fuzz_add_text(to, "0::/../x\n\n31 23 0:28 /.. /cg rw shared:9 - cgroup2 none rw,memory\n");
}

static const char *cgroup_root(void)
{
    static const char *const inside[] = {"proc", "proc/self", NULL};
    static const char *root;
    if (root == NULL) {
        root = give_folder(inside);
        give_link(root, "proc/self/cgroup", 0);
        give_link(root, "proc/self/mountinfo", 1);
    }
    return root;
}

static void see_cgroup(const cgroup *at, void *context)
{
    int *count = context;
    must(at->version == 1 || at->version == 2);
    must(strncmp(at->folder, cgroup_root(), strlen(cgroup_root())) == 0);
    must(strlen(at->name) > 0);
    must(++*count < 4096);
}

static ring_status parse_cgroups(const unsigned char *data, size_t size)
{
    const char *text = (const char *)data, *end = strstr(text, "\n\n");
    const size_t first = end != NULL ? (size_t)(end + 1 - text) : size;
    const char *root = cgroup_root();
    int count = 0;
    (void)give_fd(0, data, first);
    (void)give_fd(1, data + first, size - first);
    cgroup_visit(root, "memory", see_cgroup, &count);
    return count > 0 ? RING_OK : RING_ERR_SYSTEM;
}

const fuzz_target fuzz_cgroups = {.name = "cgroups",
                                  .reads = "/proc/self/cgroup and /proc/self/mountinfo",
                                  .most = 4096,
                                  .text = true,
                                  .seeds = seed_cgroups,
                                  .parse = parse_cgroups};
