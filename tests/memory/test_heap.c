/* SPDX-License-Identifier: Apache-2.0
 * The heap behind ring_mem_alloc(), seen from its process and from a peer. */
#include "headroom.h"
#include "heap.h"
#include "span.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit_test.h"

enum { PAGE = 4096, MIB = 1 << 20 };

static void *alloc(size_t bytes)
{
    void *ptr = NULL;
    assert_int_equal(heap_alloc(&ptr, bytes), RING_OK);
    return ptr;
}

/* Bytes of the machine's memory that the heap holds. */
static size_t committed(void)
{
    struct stat file;
    assert_int_equal(fstat(heap_fd(), &file), 0);
    return (size_t)file.st_blocks * 512;
}

static bool all_zero(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/* ---- Allocation ---------------------------------------------------------------- */

static void memory_is_aligned_zeroed_and_apart(void **state)
{
    unsigned char *blocks[20];
    for (size_t i = 0; i < 20; i++) {
        blocks[i] = alloc(i * 1000 + 1);
        assert_int_equal((uintptr_t)blocks[i] % PAGE, 0);
        assert_true(all_zero(blocks[i], i * 1000 + 1));
        memset(blocks[i], (int)i + 1, i * 1000 + 1);
    }
    for (size_t i = 0; i < 20; i++) {
        for (size_t at = 0; at < i * 1000 + 1; at++)
            assert_int_equal(blocks[i][at], i + 1);
        assert_int_equal(heap_free(blocks[i]), RING_OK);
    }
    assert_int_equal(committed(), 0);
}

static void nothing_asked_is_nothing_given(void **state)
{
    void *ptr = &ptr;
    assert_int_equal(heap_alloc(&ptr, 0), RING_OK);
    assert_null(ptr);
    assert_int_equal(heap_free(NULL), RING_OK);
}

static void freed_memory_is_used_again_and_zeroed(void **state)
{
    unsigned char *first = alloc(MIB), *second = alloc(MIB), *third = alloc(MIB);
    memset(second, 7, MIB);
    assert_int_equal(heap_free(second), RING_OK);
    unsigned char *again = alloc(MIB);
    assert_ptr_equal(again, second);
    assert_true(all_zero(again, MIB));
    heap_free(first);
    heap_free(again);
    heap_free(third);
}

static void neighbours_merge_in_every_order_of_freeing(void **state)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (size_t o = 0; o < 6; o++) {
        void *blocks[3];
        for (int i = 0; i < 3; i++)
            blocks[i] = alloc(MIB);
        void *lowest = blocks[0], *after = alloc(PAGE);
        for (int i = 0; i < 3; i++)
            assert_int_equal(heap_free(blocks[orders[o][i]]), RING_OK);
        void *whole = alloc(3 * MIB); /* fits only if all three became one */
        assert_ptr_equal(whole, lowest);
        heap_free(whole);
        heap_free(after);
    }
    assert_int_equal(committed(), 0);
}

static void what_was_not_allocated_is_not_freed(void **state)
{
    int local;
    char *ptr = alloc(3 * PAGE);
    assert_int_equal(heap_free(&local), RING_ERR_ARGUMENT);
    assert_int_equal(heap_free(ptr + PAGE), RING_ERR_ARGUMENT);
    assert_int_equal(heap_free(ptr), RING_OK);
    assert_int_equal(heap_free(ptr), RING_ERR_ARGUMENT);
}

static void too_much_is_an_error_that_tells_the_size(void **state)
{
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - PAGE, (size_t)1 << 62};
    for (size_t i = 0; i < 3; i++) {
        void *ptr = &ptr;
        char wanted[32];
        assert_int_equal(heap_alloc(&ptr, sizes[i]), RING_ERR_MEMORY);
        assert_null(ptr);
        assert_true(text_format(wanted, sizeof wanted, "%zu", sizes[i]));
        assert_non_null(strstr(fail_text(), wanted));
    }
    void *ptr;
    assert_int_equal(heap_alloc(&ptr, heap_span()), RING_ERR_MEMORY);
    assert_int_equal(committed(), 0);
}

static void more_than_the_machine_has_left_is_an_error(void **state)
{
    void *ptr;
    headroom h;
    headroom_read("", &h);
    if (h.bytes > heap_span() - 2 * PAGE)
        skip_because("this machine has as much memory as a heap has addresses");
    assert_int_equal(heap_alloc(&ptr, h.bytes), RING_ERR_MEMORY);
    assert_null(ptr);
    assert_non_null(strstr(fail_text(), h.bound));
    assert_int_equal(committed(), 0);
}

static void on_alarm(int signal)
{
}

static void signals_do_not_spoil_an_allocation(void **state)
{
    const struct sigaction quiet = {.sa_handler = on_alarm};
    const struct itimerval often = {.it_interval.tv_usec = 500, .it_value.tv_usec = 500};
    const struct itimerval never = {.it_interval.tv_usec = 0};
    sigaction(SIGALRM, &quiet, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    void *ptr = NULL;
    const ring_status status = heap_alloc(&ptr, (size_t)64 * MIB);
    setitimer(ITIMER_REAL, &never, NULL);
    assert_int_equal(status, RING_OK);
    heap_free(ptr);
}

static void *churn(void *seed)
{
    unsigned draw = (unsigned)(uintptr_t)seed;
    for (int i = 0; i < 300; i++) {
        draw = draw * 1664525u + 1013904223u;
        const size_t bytes = 1 + (draw >> 8) % 50000;
        unsigned char *ptr = NULL;
        if (heap_alloc((void **)&ptr, bytes) != RING_OK || !all_zero(ptr, bytes))
            return "an allocation failed or was not zero";
        memset(ptr, (int)draw | 1, bytes);
        if (heap_free(ptr) != RING_OK)
            return "freeing failed";
    }
    return NULL;
}

static void threads_allocate_at_the_same_time(void **state)
{
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++) {
        void *complaint;
        pthread_join(threads[i], &complaint);
        assert_null(complaint);
    }
    assert_int_equal(committed(), 0);
}

/* ---- References and peers ---------------------------------------------------------- */

static void references_cover_the_heap_and_nothing_else(void **state)
{
    int local;
    char *ptr = alloc(2 * PAGE);
    const uint64_t ref = heap_ref(ptr, 2 * PAGE);
    assert_int_not_equal(ref, 0);
    assert_int_equal(heap_ref(ptr + 100, 1), ref + 100);
    assert_int_equal(heap_ref(&local, sizeof local), 0);
    assert_int_equal(heap_ref(NULL, 0), 0);
    char *base = ptr - (ref - 1);
    assert_int_equal(heap_ref(base + heap_span() - 8, 8), heap_span() - 7);
    assert_int_equal(heap_ref(base + heap_span() - 8, 9), 0);
    assert_int_equal(heap_ref(ptr, SIZE_MAX), 0);
    assert_int_equal(heap_ref(base - 8, 8), 0);
    heap_free(ptr);
}

static void a_mapping_shows_what_the_owner_writes(void **state)
{
    void *base = NULL;
    char *before = alloc(PAGE);
    assert_int_equal(heap_map_peer(heap_fd(), heap_span(), &base), RING_OK);
    char *later = alloc(PAGE); /* allocated after the mapping was made */
    strcpy(before, "early");
    strcpy(later, "late");
    assert_string_equal((char *)base + heap_ref(before, PAGE) - 1, "early");
    assert_string_equal((char *)base + heap_ref(later, PAGE) - 1, "late");
    strcpy((char *)base + heap_ref(later, PAGE) - 1, "back");
    assert_string_equal(later, "back");
    heap_unmap_peer(base);
    heap_free(before);
    heap_free(later);
}

static void a_heap_mapped_twice_is_mapped_once(void **state)
{
    void *first = NULL, *second = NULL;
    char *ptr = alloc(PAGE);
    strcpy(ptr, "kept");
    assert_int_equal(heap_map_peer(heap_fd(), heap_span(), &first), RING_OK);
    assert_int_equal(heap_map_peer(heap_fd(), heap_span(), &second), RING_OK);
    assert_ptr_equal(first, second);
    heap_unmap_peer(first);
    assert_string_equal((char *)second + heap_ref(ptr, PAGE) - 1, "kept");
    heap_unmap_peer(second);
    heap_free(ptr);
}

/* A file as a peer would hand it over, of the right size or not. */
static int foreign_heap(size_t bytes)
{
    const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    return fd;
}

static void peers_lie_no_power_of_two_apart(void **state)
{
    enum { PEERS = 12 };
    int fds[PEERS];
    void *bases[PEERS];
    assert_int_equal(heap_span() % (2 * MIB), 0); /* whatever memory the machine has */
    for (int i = 0; i < PEERS; i++) {
        fds[i] = foreign_heap(heap_span());
        assert_int_equal(heap_map_peer(fds[i], heap_span(), &bases[i]), RING_OK);
        for (int j = 0; j < i; j++) {
            const uintptr_t a = (uintptr_t)bases[i], b = (uintptr_t)bases[j];
            const uintptr_t apart = a > b ? a - b : b - a;
            assert_int_not_equal(apart & (apart - 1), 0);
            assert_int_not_equal(apart % MIB, 0);
        }
    }
    for (int i = 0; i < PEERS; i++) {
        heap_unmap_peer(bases[i]);
        close(fds[i]);
    }
}

static void a_file_of_another_size_is_not_mapped(void **state)
{
    void *base = NULL;
    const int fd = foreign_heap(PAGE);
    assert_int_equal(heap_map_peer(fd, 2 * PAGE, &base), RING_ERR_PEER);
    assert_int_equal(heap_map_peer(fd, 0, &base), RING_ERR_PEER);
    assert_int_equal(heap_map_peer(-1, PAGE, &base), RING_ERR_PEER);
    assert_int_equal(ftruncate(fd, (off_t)SPAN_MOST + PAGE), 0);
    assert_int_equal(heap_map_peer(fd, SPAN_MOST + PAGE, &base), RING_ERR_PEER);
    assert_null(base);
    close(fd);
}

static void a_peer_may_have_a_span_of_its_own(void **state)
{
    char *base = NULL;
    const int fd = foreign_heap(SPAN_LEAST);
    assert_int_equal(heap_map_peer(fd, SPAN_LEAST, (void **)&base), RING_OK);
    base[SPAN_LEAST - 1] = 'x';
    heap_unmap_peer(base);
    close(fd);
}

/* ---- Core dumps ------------------------------------------------------------------- */

/* @return true if a core dump leaves out the mapping that holds @p at. */
static bool not_dumped(const void *at)
{
    char line[512];
    bool there = false, out = false;
    FILE *maps = fopen("/proc/self/smaps", "re");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long first, end;
        if (sscanf(line, "%lx-%lx ", &first, &end) == 2)
            there = (uintptr_t)at >= first && (uintptr_t)at < end;
        else if (there && strncmp(line, "VmFlags:", 8) == 0)
            out = strstr(line, " dd") != NULL;
    }
    fclose(maps);
    return out;
}

static void core_dumps_hold_what_is_allocated_here_and_no_more(void **state)
{
    void *peer = NULL;
    const int fd = foreign_heap(SPAN_LEAST);
    assert_int_equal(heap_map_peer(fd, SPAN_LEAST, &peer), RING_OK);
    char *ptr = alloc(MIB);
    char *last = ptr - (heap_ref(ptr, 1) - 1) + heap_span() - 1;
    assert_false(not_dumped(ptr));
    assert_true(not_dumped(last));
    assert_true(not_dumped(peer));
    heap_free(ptr);
    assert_true(not_dumped(ptr));
    heap_unmap_peer(peer);
    close(fd);
}

/* ---- Limits ----------------------------------------------------------------------- */

/* Runs @p body in a child under a limit, with a heap of its own, and expects 0 of it. */
static void under_limit(int resource, rlim_t bytes, int (*body)(void))
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
        _exit(setrlimit(resource, &limit) == 0 ? body() : 100);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int small_heap_works(void)
{
    char *ptr;
    void *none;
    if (heap_alloc((void **)&ptr, MIB) != RING_OK)
        return 1;
    memset(ptr, 1, MIB);
    if (heap_span() > (size_t)1 << 30 || heap_span() < SPAN_LEAST)
        return 2;
    if (heap_alloc(&none, (size_t)2 << 30) != RING_ERR_MEMORY)
        return 3;
    return strstr(fail_text(), "ulimit") != NULL ? 0 : 4;
}

static int no_heap_says_file_size(void)
{
    return heap_open() == RING_ERR_MEMORY && strstr(fail_text(), "ulimit -f") != NULL ? 0 : 1;
}

static int no_heap_says_address_space(void)
{
    return heap_open() == RING_ERR_MEMORY && strstr(fail_text(), "ulimit -v") != NULL ? 0 : 1;
}

static void a_limit_on_file_sizes_makes_a_smaller_heap(void **state)
{
    under_limit(RLIMIT_FSIZE, 1000000 << 10, small_heap_works);
    under_limit(RLIMIT_FSIZE, MIB, no_heap_says_file_size);
    under_limit(RLIMIT_FSIZE, 0, no_heap_says_file_size);
}

static void a_limit_on_the_address_space_makes_a_smaller_heap(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip_because("sanitizers take more address space than any limit leaves");
#endif
    under_limit(RLIMIT_AS, (rlim_t)4 << 30, small_heap_works);
    under_limit(RLIMIT_AS, (rlim_t)200 << 20, no_heap_says_address_space);
}

static void the_heap_cannot_shrink_and_has_no_name(void **state)
{
    char path[64], target[256] = "";
    assert_int_equal(heap_open(), RING_OK);
    assert_int_not_equal(ftruncate(heap_fd(), 0), 0);
    assert_true(text_format(path, sizeof path, "/proc/self/fd/%d", heap_fd()));
    assert_true(readlink(path, target, sizeof target - 1) > 0);
    assert_non_null(strstr(target, "/memfd:"));
    assert_non_null(strstr(target, "(deleted)"));
    assert_int_equal(fcntl(heap_fd(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

/* Runs in the child; its exit status is the number of the first thing that is wrong. */
static int child_has_own_heap(char *parents)
{
    char *mine = NULL;
    if (heap_alloc((void **)&mine, PAGE) != RING_OK)
        return 1;
    if (heap_ref(parents, 1) != 0)
        return 2;
    strcpy(mine, "child");
    return heap_free(parents) == RING_OK ? 3 : 0;
}

static void a_forked_child_gets_a_heap_of_its_own(void **state)
{
    int status;
    char *ptr = alloc(PAGE);
    strcpy(ptr, "parent");
    const pid_t child = fork();
    if (child == 0)
        _exit(child_has_own_heap(ptr));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_string_equal(ptr, "parent");
    heap_free(ptr);
}

/* Where a handler that runs before the heap's maps a page, as other libraries' may. */
static char *intruder;

static void intrude(void)
{
    if (intruder != NULL)
        intruder = mmap(intruder, PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

__attribute__((constructor(101))) static void intrude_in_children(void)
{
    pthread_atfork(NULL, NULL, intrude);
}

/* A hint is followed where nothing is mapped. */
static bool is_barred(char *at)
{
    return mmap(at, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != at;
}

static int all_else_is_barred(char *base, size_t bytes)
{
    if (intruder != base + MIB)
        return 1;
    strcpy(intruder, "kept");
    for (size_t at = 0; at < bytes; at += bytes / 64)
        if (!is_barred(base + at))
            return 2;
    return is_barred(intruder - PAGE) && is_barred(intruder + PAGE) ? 0 : 3;
}

static void what_lies_in_a_child_already_stays_and_the_rest_is_barred(void **state)
{
    int status;
    assert_int_equal(heap_open(), RING_OK);
    char *base = heap_base();
    const size_t bytes = heap_span();
    intruder = base + MIB;
    const pid_t child = fork();
    if (child == 0)
        _exit(all_else_is_barred(base, bytes));
    intruder = NULL;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: a heap of this process would count among its children's addresses. */
        cmocka_unit_test(a_limit_on_file_sizes_makes_a_smaller_heap),
        cmocka_unit_test(a_limit_on_the_address_space_makes_a_smaller_heap),
        cmocka_unit_test(memory_is_aligned_zeroed_and_apart),
        cmocka_unit_test(nothing_asked_is_nothing_given),
        cmocka_unit_test(freed_memory_is_used_again_and_zeroed),
        cmocka_unit_test(neighbours_merge_in_every_order_of_freeing),
        cmocka_unit_test(what_was_not_allocated_is_not_freed),
        cmocka_unit_test(too_much_is_an_error_that_tells_the_size),
        cmocka_unit_test(more_than_the_machine_has_left_is_an_error),
        cmocka_unit_test(signals_do_not_spoil_an_allocation),
        cmocka_unit_test(threads_allocate_at_the_same_time),
        cmocka_unit_test(references_cover_the_heap_and_nothing_else),
        cmocka_unit_test(a_mapping_shows_what_the_owner_writes),
        cmocka_unit_test(a_heap_mapped_twice_is_mapped_once),
        cmocka_unit_test(peers_lie_no_power_of_two_apart),
        cmocka_unit_test(a_file_of_another_size_is_not_mapped),
        cmocka_unit_test(a_peer_may_have_a_span_of_its_own),
        cmocka_unit_test(core_dumps_hold_what_is_allocated_here_and_no_more),
        cmocka_unit_test(the_heap_cannot_shrink_and_has_no_name),
        cmocka_unit_test(a_forked_child_gets_a_heap_of_its_own),
        cmocka_unit_test(what_lies_in_a_child_already_stays_and_the_rest_is_barred),
    };
    return cmocka_run_group_tests_name("memory.heap", tests, NULL, NULL);
}
