/* SPDX-License-Identifier: Apache-2.0
 * Memory of a process that forks, by the public calls. */
#include <ring/ring.h>

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit_test.h"

enum { PAGE = 4096, BYTES = 64 * PAGE };

static void new_memory(char **memory)
{
    assert_int_equal(ring_mem_alloc((void **)memory, BYTES), RING_OK);
    strcpy(*memory, "parent");
}

/* Runs @p body in a forked child, where a fault ends it by its signal. @return its status. */
static int child_status(int (*body)(char *memory), char *memory)
{
    int status;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* cmocka and sanitizers catch it */
        _exit(body(memory));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void must_fault(int (*body)(char *memory), char *memory)
{
    const int status = child_status(body, memory);
    assert_int_equal(status, 0x0b);
    assert_int_equal(WTERMSIG(status), SIGSEGV);
}

/* @p body returns the number of the first thing that is wrong. */
static void must_work(int (*body)(char *memory), char *memory)
{
    assert_int_equal(child_status(body, memory), 0);
}

/* ---- The parent's memory ------------------------------------------------------------ */

static int read_it(char *memory)
{
    return *(volatile char *)memory == 'x';
}

static int write_it(char *memory)
{
    *(volatile char *)memory = 'x';
    return 0;
}

static int write_the_last(char *memory)
{
    return write_it(memory + BYTES - 1);
}

static void a_touch_in_a_child_faults(void **state)
{
    char *memory;
    new_memory(&memory);
    must_fault(read_it, memory);
    must_fault(write_it, memory);
    must_fault(write_the_last, memory);
    assert_string_equal(memory, "parent");
    assert_int_equal(ring_mem_free(memory), RING_OK);
}

static int map_at_it(char *memory)
{
    for (size_t bytes = PAGE; bytes <= BYTES; bytes *= 2) {
        const char *got = mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                               -1, 0);
        if (got == MAP_FAILED || (got < memory + BYTES && got + bytes > memory))
            return 1;
        const char *block = malloc(BYTES); /* by mmap() */
        if (block == NULL || (block < memory + BYTES && block + BYTES > memory))
            return 2;
    }
    return read_it(memory);
}

static void nothing_of_a_child_comes_to_lie_there(void **state)
{
    char *memory;
    new_memory(&memory);
    must_fault(map_at_it, memory);
    assert_int_equal(ring_mem_free(memory), RING_OK);
}

static int copy_of_it(char *memory)
{
    if (strcmp(memory, "parent") != 0)
        return 1;
    strcpy(memory, "child");
    return 0;
}

static void memory_of_the_user_is_copied_as_ever(void **state)
{
    char *memory = strcpy(malloc(BYTES), "parent");
    assert_int_equal(ring_mem_register(memory, BYTES), RING_OK);
    must_work(copy_of_it, memory);
    assert_string_equal(memory, "parent");
    assert_int_equal(ring_mem_deregister(memory), RING_OK);
    free(memory);
}

/* ---- The child's own ---------------------------------------------------------------- */

static int own_memory(char *parents)
{
    char *mine = NULL;
    if (ring_mem_free(parents) != RING_ERR_ARGUMENT)
        return 1;
    if (ring_mem_alloc((void **)&mine, BYTES) != RING_OK || *mine != 0)
        return 2;
    strcpy(mine, "child");
    const int grandchild = child_status(read_it, mine);
    if (!WIFSIGNALED(grandchild))
        return 3;
    if (!WIFSIGNALED(child_status(read_it, parents)))
        return 4;
    if (strcmp(mine, "child") != 0)
        return 5;
    return ring_mem_free(parents) == RING_ERR_ARGUMENT && ring_mem_free(mine) == RING_OK ? 0 : 6;
}

static void a_child_has_memory_of_its_own(void **state)
{
    char *memory;
    new_memory(&memory);
    must_work(own_memory, memory);
    assert_string_equal(memory, "parent");
    assert_int_equal(ring_mem_free(memory), RING_OK);
}

/* ---- Children that run programs ------------------------------------------------------ */

static void programs_start_as_ever(void **state)
{
    char *memory, line[16] = "";
    char *const command[] = {(char *)"true", NULL};
    pid_t child;
    int status;
    new_memory(&memory);
    assert_int_equal(system("exit 3") >> 8, 3);
    FILE *output = popen("echo hello", "re");
    assert_non_null(fgets(line, sizeof line, output));
    assert_int_equal(pclose(output), 0);
    assert_string_equal(line, "hello\n");
    assert_int_equal(posix_spawnp(&child, "true", NULL, NULL, command, environ), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_string_equal(memory, "parent");
    assert_int_equal(ring_mem_free(memory), RING_OK);
}

/* ---- Forks amid calls ---------------------------------------------------------------- */

enum { FORKERS = 4, USERS = 4, FORKS = 25 };

static struct {
    ring_comm *comm;
    _Atomic bool over;
    _Atomic int complaints;
} storm;

static bool comm_is(ring_status expected)
{
    ring_comm_info info = {.size = sizeof info};
    return ring_comm_get_info(storm.comm, &info) == expected;
}

static bool memory_works(void)
{
    static char plain[1]; /* of all threads: one at a time registers it */
    void *ptr = NULL;
    if (ring_mem_alloc(&ptr, 3 * PAGE) != RING_OK)
        return false;
    memset(ptr, 1, 3 * PAGE);
    if (ring_mem_register(plain, sizeof plain) == RING_OK)
        ring_mem_deregister(plain);
    return ring_mem_free(ptr) == RING_OK;
}

static void *use(void *unused)
{
    while (!storm.over)
        storm.complaints += !memory_works() || !comm_is(RING_OK);
    return NULL;
}

/* A child that hangs is ended by the alarm, and counts. */
static void *fork_on(void *unused)
{
    for (int i = 0; i < FORKS; i++) {
        int status = -1;
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);
            _exit(!comm_is(RING_ERR_USAGE) || !memory_works());
        }
        storm.complaints += waitpid(child, &status, 0) != child || status != 0;
    }
    return NULL;
}

static void forks_amid_calls_hang_nobody(void **state)
{
    pthread_t forkers[FORKERS], users[USERS];
    assert_int_equal(ring_comm_init_env(&storm.comm), RING_OK);
    for (int i = 0; i < USERS; i++)
        assert_int_equal(pthread_create(&users[i], NULL, use, NULL), 0);
    for (int i = 0; i < FORKERS; i++)
        assert_int_equal(pthread_create(&forkers[i], NULL, fork_on, NULL), 0);
    for (int i = 0; i < FORKERS; i++)
        pthread_join(forkers[i], NULL);
    storm.over = true;
    for (int i = 0; i < USERS; i++)
        pthread_join(users[i], NULL);
    assert_int_equal(storm.complaints, 0);
    ring_comm_destroy(storm.comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_touch_in_a_child_faults),
        cmocka_unit_test(nothing_of_a_child_comes_to_lie_there),
        cmocka_unit_test(memory_of_the_user_is_copied_as_ever),
        cmocka_unit_test(a_child_has_memory_of_its_own),
        cmocka_unit_test(programs_start_as_ever),
        cmocka_unit_test(forks_amid_calls_hang_nobody),
    };
    return cmocka_run_group_tests_name("memory.children", tests, NULL, NULL);
}
