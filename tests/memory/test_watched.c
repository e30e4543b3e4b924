/* SPDX-License-Identifier: Apache-2.0
 * Tests watched memory: a query that follows a call which changed mappings sees the change. */
#include "mappings.h"
#include "watched.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit_test.h"

enum { PAGE = 4096, PAGES = 32, BYTES = PAGES * PAGE };
enum { NUMBER = 7, NEIGHBOUR = 9 };

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static char *map_at(void *at, size_t bytes, int flags)
{
    char *memory = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1,
                        0);
    return memory != MAP_FAILED ? memory : NULL;
}

static char *map(void)
{
    char *memory = map_at(NULL, BYTES, 0);
    assert_non_null(memory);
    memset(memory, 1, BYTES);
    return memory;
}

/* A whole range may count as changed while the thread gets no core; a changed one stays so. */
static bool becomes_whole(unsigned number)
{
    const double deadline = clock_now() + 60;
    bool whole;
    while (!(whole = watched_is_whole(number)) && clock_now() < deadline)
        clock_sleep(0.001);
    return whole;
}

static char *map_watched(void)
{
    char *memory = map();
    assert_true(watched_begin(NUMBER, memory, BYTES));
    assert_true(becomes_whole(NUMBER));
    return memory;
}

/* All but pages [from, to), which are somebody else's by now, it may be. */
static void unmap_around(char *memory, size_t from, size_t to)
{
    munmap(memory, from * PAGE);
    munmap(memory + to * PAGE, BYTES - to * PAGE);
}

/* ---- What changes pages: how many there are left ----------------------------------- */

static void unmap(char *memory)
{
    munmap(memory, BYTES);
}

static size_t unmap_all(char *memory)
{
    unmap(memory);
    return 0;
}

static size_t unmap_last_page(char *memory)
{
    munmap(memory + BYTES - PAGE, PAGE);
    return PAGES - 1;
}

static size_t map_over(char *memory)
{
    assert_ptr_equal(map_at(memory, BYTES, MAP_FIXED), memory);
    return PAGES;
}

static size_t move(char *memory)
{
    char *to = mremap(memory, BYTES, 64 * BYTES, MREMAP_MAYMOVE);
    assert_true(to != MAP_FAILED);
    munmap(to, 64 * BYTES);
    return 0;
}

static size_t move_pages_out(char *memory)
{
    char *to = mremap(memory, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    assert_true(to != MAP_FAILED);
    munmap(to, BYTES);
    return PAGES;
}

static size_t shrink(char *memory)
{
    assert_ptr_equal(mremap(memory, BYTES, BYTES / 2, 0), memory);
    return PAGES / 2;
}

static size_t move_here(char *memory)
{
    char *other = map();
    assert_ptr_equal(mremap(other, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, memory), memory);
    return PAGES;
}

static size_t discard(char *memory)
{
    assert_int_equal(madvise(memory + PAGE, PAGE, MADV_DONTNEED), 0);
    return PAGES;
}

static size_t let_go(char *memory)
{
    assert_int_equal(madvise(memory + PAGE, PAGE, MADV_FREE), 0);
    return PAGES;
}

static void every_change_is_noticed(void **state)
{
    static size_t (*const changes[])(char *) = {unmap_all, unmap_last_page, map_over,
                                                move,      move_pages_out,  move_here,
                                                shrink,    discard,         let_go};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char *memory = map_watched();
        const size_t left = changes[i](memory);
        if (watched_is_whole(NUMBER))
            fail_msg("change %zu was not noticed", i);
        assert_true(watched_has_news());
        assert_false(watched_has_news());
        watched_end(NUMBER);
        unmap_around(memory, left, PAGES);
    }
}

/* As free() does when it trims the heap. */
static void a_lower_break_is_noticed(void **state)
{
    char *memory = sbrk(BYTES);
    memset(memory, 1, BYTES);
    assert_true(watched_begin(NUMBER, memory, BYTES));
    if (sbrk(0) != memory + BYTES)
        skip_because("something else moved the program break, too");
    assert_true(sbrk(-BYTES) != (void *)-1);
    assert_false(watched_is_whole(NUMBER));
    watched_end(NUMBER);
}

/* ---- What does not ---------------------------------------------------------------- */

static void neighbours_stay_whole(void **state)
{
    char *memory = map();
    assert_true(watched_begin(NUMBER, memory, PAGE + 1));
    assert_true(watched_begin(NEIGHBOUR, memory + 4 * PAGE + 1, PAGE));
    assert_int_equal(munmap(memory + 2 * PAGE, 2 * PAGE), 0);
    assert_true(becomes_whole(NUMBER));
    assert_true(becomes_whole(NEIGHBOUR));
    assert_int_equal(munmap(memory + 5 * PAGE, PAGE), 0);
    assert_true(becomes_whole(NUMBER));
    assert_false(watched_is_whole(NEIGHBOUR));
    watched_end(NUMBER);
    watched_end(NEIGHBOUR);
    munmap(memory, 2 * PAGE);
    munmap(memory + 4 * PAGE, PAGE);
    munmap(memory + 6 * PAGE, BYTES - 6 * PAGE);
}

static void memory_is_used_as_before(void **state)
{
    char *memory = map_at(NULL, BYTES, 0);
    assert_true(watched_begin(NUMBER, memory, BYTES));
    memset(memory, 2, BYTES / 2); /* first touch, by this thread and by the kernel */
    const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(zero, memory + BYTES / 2, BYTES / 2), BYTES / 2);
    close(zero);
    assert_int_equal(mprotect(memory, BYTES, PROT_READ), 0);
    assert_int_equal(mprotect(memory, BYTES, PROT_READ | PROT_WRITE), 0);
    memory[BYTES - 1] = 3;
    assert_true(becomes_whole(NUMBER));
    watched_end(NUMBER);
    munmap(memory, BYTES);
}

/* mremap() refuses what is split. */
static void a_mapping_of_which_a_part_is_watched_still_grows(void **state)
{
    char *memory = map();
    assert_true(watched_begin(NUMBER, memory + 4 * PAGE, PAGE));
    char *larger = mremap(memory, BYTES, 64 * BYTES, MREMAP_MAYMOVE);
    assert_true(larger != MAP_FAILED);
    assert_int_equal(larger[BYTES - 1], 1);
    watched_end(NUMBER);
    munmap(larger, 64 * BYTES);
}

/* ---- What cannot be watched --------------------------------------------------------- */

static void refused(void *memory)
{
    assert_true(memory != MAP_FAILED);
    assert_false(watched_begin(NUMBER, memory, BYTES));
    assert_false(watched_is_whole(NUMBER));
}

static void map_refused(int rights, int flags, int file)
{
    void *memory = mmap(NULL, BYTES, rights, flags, file, 0);
    refused(memory);
    munmap(memory, BYTES);
}

/* Pages of files go when somebody truncates those, and the kernel does not tell. */
static void other_memory_is_refused(void **state)
{
    const int rights = PROT_READ | PROT_WRITE;
    const int file = memfd_create("test", MFD_CLOEXEC);
    assert_int_equal(ftruncate(file, BYTES), 0);
    map_refused(rights, MAP_SHARED, file);
    map_refused(rights, MAP_PRIVATE, file);
    map_refused(rights, MAP_SHARED | MAP_ANONYMOUS, -1);
    map_refused(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    close(file);
    char *gap = map();
    munmap(gap + PAGE, PAGE);
    refused(gap);
    unmap_around(gap, 1, 2);
    assert_false(watched_is_refused());
}

/* ---- Several threads ---------------------------------------------------------------- */

static _Atomic(char *) given;
static _Atomic bool over;

static void *map_when_free(void *unused)
{
    while (!over) {
        char *memory = given;
        if (memory == NULL || map_at(memory, BYTES, MAP_FIXED_NOREPLACE) != memory)
            continue;
        given = NULL;
        if (watched_is_whole(NUMBER))
            return "the pages of before";
        over = true;
    }
    return unused;
}

/* The address is free, and another thread may have it, before munmap() has returned. */
static void what_is_mapped_at_once_elsewhere_is_noticed(void **state)
{
    for (int round = 0; round < 300; round++) {
        pthread_t thread;
        void *complaint;
        char *memory = map_watched();
        over = false;
        given = memory;
        pthread_create(&thread, NULL, map_when_free, NULL);
        if (round % 2)
            sched_yield();
        munmap(memory, BYTES);
        for (int i = 0; i < 100 && !over; i++)
            usleep(100); /* unless others have taken the address */
        over = true;
        pthread_join(thread, &complaint);
        assert_null(complaint);
        watched_end(NUMBER);
        if (given == NULL)
            munmap(memory, BYTES);
    }
}

static void *map_anew(void *arg)
{
    const unsigned number = *(unsigned *)arg;
    char *memory = map_at(NULL, BYTES, 0);
    bool whole = false;
    for (int round = 0; round < 1000; round++) {
        memory[0] = 1;
        if (!watched_begin(number, memory, BYTES))
            return "it cannot be watched";
        if (!whole && round % 100 == 0) /* it may take long among others that change mappings */
            whole = becomes_whole(number);
        if (round % 2)
            madvise(memory, BYTES, MADV_DONTNEED);
        else
            map_at(memory, BYTES, MAP_FIXED);
        if (watched_is_whole(number))
            return "it counts as whole";
    }
    watched_end(number);
    munmap(memory, BYTES);
    return whole ? NULL : "it never counts as whole";
}

static void threads_change_mappings_at_the_same_time(void **state)
{
    pthread_t threads[4];
    unsigned numbers[4] = {0, 1, 2, WATCHED_MOST - 1};
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, map_anew, &numbers[i]);
    for (int i = 0; i < 4; i++) {
        void *complaint;
        pthread_join(threads[i], &complaint);
        assert_null(complaint);
    }
}

/* ---- Life --------------------------------------------------------------------------- */

static int threads_of_process(void)
{
    int threads = 0;
    char line[128];
    FILE *file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file) != NULL)
        (void)sscanf(line, "Threads: %d", &threads);
    fclose(file);
    return threads;
}

/* One that was joined may be seen for a moment: at most 10 s. */
static void assert_threads(int expected)
{
    for (int i = 0; i < 10000 && threads_of_process() != expected; i++)
        usleep(1000);
    assert_int_equal(threads_of_process(), expected);
}

static void it_ends_and_begins_again(void **state)
{
    watched_close();
    usleep(100000);
    const int own_threads = threads_of_process();
    char *memory = map_watched();
    assert_threads(own_threads + 1);
    watched_close();
    assert_threads(own_threads);
    assert_false(watched_is_whole(NUMBER));
    unmap(memory); /* nobody reads of it, and it does not wait */
    watched_close();
    memory = map_watched();
    unmap(memory);
    assert_false(watched_is_whole(NUMBER));
}

/* Its exit status is the number of the first thing that is wrong. */
static int child_has_none(char *memory)
{
    if (watched_is_whole(NUMBER))
        return 1;
    memset(memory, 5, BYTES);
    munmap(memory, BYTES); /* nobody would read the event */
#ifdef __SANITIZE_THREAD__ /* such children may start no threads */
    return 0;
#endif
    char *own = map_at(NULL, BYTES, 0);
    if (!watched_begin(NUMBER, own, BYTES) || !becomes_whole(NUMBER))
        return 2;
    munmap(own, BYTES);
    return watched_is_whole(NUMBER) ? 3 : 0;
}

static void a_forked_child_has_its_own(void **state)
{
    int status;
    char *memory = map_watched();
    const pid_t child = fork();
    if (child == 0)
        _exit(child_has_none(memory));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(becomes_whole(NUMBER));
    assert_int_equal(memory[BYTES - 1], 1);
    unmap(memory);
    assert_false(watched_is_whole(NUMBER));
}

static void a_program_that_is_started_does_not_have_it(void **state)
{
    char *memory = map_watched();
    assert_int_equal(system("! ls -l /proc/self/fd | grep -q userfaultfd"), 0);
    unmap(memory);
}

static void mappings_are_found_whole(void **state)
{
    mappings_range around;
    char *memory = map();
    assert_int_equal(mprotect(memory, PAGE, PROT_NONE), 0);
    assert_int_equal(mprotect(memory + BYTES - PAGE, PAGE, PROT_NONE), 0);
    assert_true(mappings_around(memory + 5 * PAGE + 1, 1, &around));
    assert_true(around.from == (uintptr_t)memory + PAGE);
    assert_true(around.to == (uintptr_t)memory + BYTES - PAGE);
    assert_false(mappings_around(memory + PAGE - 1, 2, &around));
    assert_false(mappings_around(memory + BYTES - PAGE - 1, 2, &around));
    munmap(memory, BYTES);
}

static int close_all(void **state)
{
    watched_close();
    return 0;
}

int main(void)
{
    char why[200];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_change_is_noticed),
        cmocka_unit_test(a_lower_break_is_noticed),
        cmocka_unit_test(neighbours_stay_whole),
        cmocka_unit_test(memory_is_used_as_before),
        cmocka_unit_test(a_mapping_of_which_a_part_is_watched_still_grows),
        cmocka_unit_test(other_memory_is_refused),
        cmocka_unit_test(what_is_mapped_at_once_elsewhere_is_noticed),
        cmocka_unit_test(threads_change_mappings_at_the_same_time),
        cmocka_unit_test(it_ends_and_begins_again),
        cmocka_unit_test(a_forked_child_has_its_own),
        cmocka_unit_test(a_program_that_is_started_does_not_have_it),
        cmocka_unit_test(mappings_are_found_whole),
    };
    if (!watched_probe(why, sizeof why)) {
        printf("SKIPPED: %s\n", why);
        return 77;
    }
    return cmocka_run_group_tests_name("memory.watched", tests, NULL, close_all);
}
