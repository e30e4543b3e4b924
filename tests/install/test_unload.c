/* SPDX-License-Identifier: Apache-2.0
 * A plugin's libring: loaded, used, closed, loaded again. Its objects stay good, and no load costs
 * anything after the first. Usage: test_unload LIBRARY */
#include <ring/ring.h>

#include <dirent.h>
#include <dlfcn.h>
#include <string.h>

#include "unit_test.h"

static const char *library;

static int count_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static void *function(void *handle, const char *name)
{
    void *found = dlsym(handle, name);
    assert_non_null(found);
    return found;
}

/* Loads, makes a communicator and memory, closes. @return the memory. */
static char *use_once(void)
{
    ring_status (*init)(ring_comm **), (*alloc)(void **, size_t);
    void (*destroy)(ring_comm *);
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(handle);
    *(void **)&init = function(handle, "ring_comm_init_env");
    *(void **)&alloc = function(handle, "ring_mem_alloc");
    *(void **)&destroy = function(handle, "ring_comm_destroy");
    ring_comm *comm = NULL;
    static char *memory;
    assert_int_equal(init(&comm), RING_OK);
    assert_int_equal(alloc((void **)&memory, 1000), RING_OK);
    destroy(comm);
    assert_int_equal(dlclose(handle), 0);
    return memory;
}

static void a_closed_library_leaves_what_it_gave_and_takes_no_more(void **state)
{
    char *first = use_once();
    strcpy(first, "kept");
    const int descriptors = count_descriptors();
    for (int i = 0; i < 5; i++)
        strcpy(use_once(), "later");
    assert_int_equal(count_descriptors(), descriptors);
    assert_string_equal(first, "kept");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_closed_library_leaves_what_it_gave_and_takes_no_more),
    };
    library = argc > 1 ? argv[1] : "libring.so";
    return cmocka_run_group_tests_name("unload", tests, NULL, NULL);
}
