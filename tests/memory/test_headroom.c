/* SPDX-License-Identifier: Apache-2.0
 * How much memory is left, on made machines. */
#include "headroom.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit_test.h"

enum { MIB = 1 << 20 };

static char root[64];

static int make_root(void **state)
{
    strcpy(root, "/tmp/ring-headroom-XXXXXX");
    return mkdtemp(root) == NULL;
}

static int drop_entry(const char *path, const struct stat *what, int kind, struct FTW *where)
{
    return remove(path);
}

static int drop_root(void **state)
{
    return nftw(root, drop_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* Writes a file of the made machine, with the folders it lies in. */
static void put(const char *path, const char *text)
{
    char full[512];
    assert_true(text_format(full, sizeof full, "%s%s", root, path));
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')) != NULL; *at++ = '/') {
        *at = '\0';
        mkdir(full, 0700);
    }
    FILE *file = fopen(full, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void left(size_t mib, const char *bound)
{
    headroom h;
    headroom_read(root, &h);
    assert_int_equal(h.bytes, mib * MIB);
    assert_string_equal(h.bound, bound);
}

static void machine(const char *available_kib)
{
    char text[200];
    assert_true(text_format(text, sizeof text,
                            "MemTotal:       16384000 kB\nMemFree:  1 kB\n"
                            "MemAvailable:   %s kB\nSwapFree:  999999 kB\n",
                            available_kib));
    put("/proc/meminfo", text);
}

/* Version 2, as systemd mounts it. */
static void version_2(const char *path)
{
    char text[300];
    assert_true(text_format(text, sizeof text, "0::%s\n", path));
    put("/proc/self/cgroup", text);
    put("/proc/self/mountinfo",
        "22 1 0:20 / /proc rw,nosuid shared:5 - proc proc rw\n"
        "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
}

static void nothing_known_is_no_bound(void **state)
{
    headroom h;
    headroom_read(root, &h);
    assert_true(h.bytes == SIZE_MAX);
}

static void this_machine_has_some_left(void **state)
{
    headroom h;
    headroom_read("", &h);
    assert_in_range(h.bytes, 1, SIZE_MAX - 1);
    assert_true(strlen(h.bound) > 0);
}

static void without_cgroups_it_is_what_the_machine_has(void **state)
{
    machine("2048000");
    left(2000, "the machine's available memory");
}

static void a_limit_of_version_2_counts(void **state)
{
    machine("2048000");
    version_2("/user.slice/job");
    put("/sys/fs/cgroup/user.slice/job/memory.max", "314572800\n");
    put("/sys/fs/cgroup/user.slice/job/memory.current", "104857600\n");
    left(200, "the memory limit of the cgroup /user.slice/job");
}

static void page_cache_counts_as_free(void **state)
{
    machine("2048000");
    version_2("/job");
    put("/sys/fs/cgroup/job/memory.max", "314572800\n");
    put("/sys/fs/cgroup/job/memory.current", "314572800\n");
    put("/sys/fs/cgroup/job/memory.stat",
        "anon 9\nfile 209715200\nshmem 5\n"
        "inactive_anon 77\ninactive_file 52428800\nactive_file 10485760\nunevictable 0\n");
    left(60, "the memory limit of the cgroup /job");
}

static void the_tightest_of_all_above_counts(void **state)
{
    machine("2048000");
    version_2("/a/b/c");
    put("/sys/fs/cgroup/a/b/c/memory.max", "max\n");
    put("/sys/fs/cgroup/a/b/c/memory.current", "1048576\n");
    put("/sys/fs/cgroup/a/b/memory.max", "104857600\n");
    put("/sys/fs/cgroup/a/b/memory.current", "1048576\n");
    put("/sys/fs/cgroup/a/memory.max", "104857600\n");
    put("/sys/fs/cgroup/a/memory.current", "94371840\n");
    left(10, "the memory limit of the cgroup /a");
}

static void more_used_than_allowed_is_nothing_left(void **state)
{
    machine("2048000");
    version_2("/a");
    put("/sys/fs/cgroup/a/memory.max", "104857600\n");
    put("/sys/fs/cgroup/a/memory.current", "104861696\n");
    left(0, "the memory limit of the cgroup /a");
}

static void a_container_sees_its_own_cgroup_at_the_top(void **state)
{
    machine("2048000");
    version_2("/");
    put("/sys/fs/cgroup/memory.max", "104857600\n");
    put("/sys/fs/cgroup/memory.current", "0\n");
    left(100, "the memory limit of the cgroup /");
}

/* The path is the host's; the mount shows only what lies below the container. */
static void a_path_from_the_host_is_found_in_the_container(void **state)
{
    machine("2048000");
    put("/proc/self/cgroup", "5:cpu,cpuacct:/docker/12ab\n4:hugetlb,memory:/docker/12ab/sub\n"
                             "0::/elsewhere\n");
    put("/proc/self/mountinfo",
        "40 30 0:30 /docker/12ab /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct\n"
        "41 30 0:31 /docker/12ab /sys/fs/cgroup/memory ro,nosuid master:11 - cgroup cgroup "
        "rw,hugetlb,memory\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "52428800\n");
    put("/sys/fs/cgroup/memory/sub/memory.limit_in_bytes", "104857600\n");
    put("/sys/fs/cgroup/memory/sub/memory.usage_in_bytes", "52428800\n");
    put("/sys/fs/cgroup/memory/sub/memory.stat",
        "cache 9\ninactive_file 7\n"
        "total_inactive_file 10485760\ntotal_active_file 0\n");
    left(60, "the memory limit of the cgroup /sub");
}

static void a_path_that_is_not_to_be_seen_counts_as_the_top(void **state)
{
    machine("2048000");
    put("/proc/self/cgroup", "4:memory:/docker/12abc\n");
    put("/proc/self/mountinfo",
        "41 30 0:31 /docker/12ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "104857600\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "0\n");
    left(100, "the memory limit of the cgroup /");
}

/* Hybrid: version 2 is mounted without the memory controller. */
static void both_versions_may_be_there(void **state)
{
    machine("2048000");
    put("/proc/self/cgroup", "4:memory:/job\n0::/unit\n");
    put("/proc/self/mountinfo", "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                                "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    put("/sys/fs/cgroup/unified/unit/cgroup.procs", "1\n");
    put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "104857600\n");
    put("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "0\n");
    left(100, "the memory limit of the cgroup /job");
}

static void nonsense_is_no_bound(void **state)
{
    machine("2048000");
    put("/proc/self/cgroup", "\n:\n0:\nmemory\n4:memory\n0::/a\n");
    put("/proc/self/mountinfo", "\n - \n - cgroup2\n1 2 3 - cgroup2 x rw\n");
    put("/sys/fs/cgroup/a/memory.max", "1\n");
    put("/sys/fs/cgroup/a/memory.current", "1\n");
    left(2000, "the machine's available memory");
}

int main(void)
{
#define ON_MADE(test) cmocka_unit_test_setup_teardown(test, make_root, drop_root)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(this_machine_has_some_left),
        ON_MADE(nothing_known_is_no_bound),
        ON_MADE(without_cgroups_it_is_what_the_machine_has),
        ON_MADE(a_limit_of_version_2_counts),
        ON_MADE(page_cache_counts_as_free),
        ON_MADE(the_tightest_of_all_above_counts),
        ON_MADE(more_used_than_allowed_is_nothing_left),
        ON_MADE(a_container_sees_its_own_cgroup_at_the_top),
        ON_MADE(a_path_from_the_host_is_found_in_the_container),
        ON_MADE(a_path_that_is_not_to_be_seen_counts_as_the_top),
        ON_MADE(both_versions_may_be_there),
        ON_MADE(nonsense_is_no_bound),
    };
    return cmocka_run_group_tests_name("memory.headroom", tests, NULL, NULL);
}
