/* SPDX-License-Identifier: Apache-2.0
 *
 * The choice of the level: by name, by RING_SIMD on first use, by several threads at once.
 * First use happens once a process, so each such case is a child that starts before this
 * process has used any kernel. */

#include "unit_test.h"

#include "kernels.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8 };

static pthread_barrier_t start;

static void *use_first(void *out)
{
    const float one[3] = {1, 1, 1};
    pthread_barrier_wait(&start);
    *(const char **)out = kernel_sum_squares(one, 3) == 3 ? kernels_level() : "wrong sum";
    return NULL;
}

/* Runs in the child. @return the level that all threads saw, or "differ". */
static const char *level_of_all_threads(void)
{
    pthread_t threads[THREADS];
    const char *seen[THREADS];
    bool same = true;
    pthread_barrier_init(&start, NULL, THREADS);
    for (int k = 0; k < THREADS; k++)
        if (pthread_create(&threads[k], NULL, use_first, &seen[k]) != 0)
            abort();
    for (int k = 0; k < THREADS; k++) {
        pthread_join(threads[k], NULL);
        same = same && strcmp(seen[k], seen[0]) == 0;
    }
    pthread_barrier_destroy(&start);
    return same ? seen[0] : "differ";
}

/* The level that a child with RING_SIMD=@p simd chose, and its output on stderr. */
static void first_use(const char *simd, char *level, char *said, size_t size)
{
    int answer[2], errors[2], status;
    assert_int_equal(pipe(answer), 0);
    assert_int_equal(pipe(errors), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(errors[1], STDERR_FILENO);
        if (simd)
            setenv("RING_SIMD", simd, 1);
        else
            unsetenv("RING_SIMD");
        const char *name = level_of_all_threads();
        _exit(write(answer[1], name, strlen(name) + 1) > 0 ? 0 : 1);
    }
    close(answer[1]);
    close(errors[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(read(answer[0], level, size) > 0);
    const ssize_t length = read(errors[0], said, size - 1);
    said[length > 0 ? length : 0] = '\0';
    close(answer[0]);
    close(errors[0]);
}

static void test_first_use_takes_the_level_of_ring_simd(void **state)
{
    char level[256], said[256];
    first_use("c", level, said, sizeof level);
    assert_string_equal(level, "c");
    assert_string_equal(said, "");
}

#if defined __x86_64__
/* The kernel's list of flags, not the compiler's run time's. */
static bool cpu_has(const char *flag)
{
    static char text[4096];
    FILE *file = fopen("/proc/cpuinfo", "r");
    assert_non_null(file);
    bool found = false;
    while (!found && fgets(text, sizeof text, file) != NULL)
        found = strncmp(text, "flags", 5) == 0 && strstr(text, flag) != NULL;
    fclose(file);
    return found;
}
#endif

static void test_first_use_without_ring_simd_takes_the_best(void **state)
{
    char best[256], automatic[256], said[256];
    first_use(NULL, best, said, sizeof best);
    assert_string_equal(said, "");
    first_use("auto", automatic, said, sizeof automatic);
    assert_string_equal(said, "");
    assert_string_equal(best, automatic);
#if defined __x86_64__
    assert_int_equal(strcmp(best, "c") != 0, cpu_has(" avx2 ") && cpu_has(" f16c "));
#endif
}

static void test_first_use_with_an_unknown_level_says_so_once(void **state)
{
    char level[256], said[256];
    first_use("avx9", level, said, sizeof level);
    assert_string_not_equal(level, "differ");
    assert_non_null(strstr(said, "RING_SIMD=avx9"));
    assert_non_null(strstr(said, level));
    assert_ptr_equal(strchr(said, '\n'), strrchr(said, '\n'));
}

static void test_unknown_level_is_refused_and_changes_nothing(void **state)
{
    assert_true(kernels_select("c"));
    static const char *const wrong[] = {"", "C", "sse", "avx", "avx512f", "auto "};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(kernels_select(wrong[i]));
        assert_string_equal(kernels_level(), "c");
    }
}

static void test_selected_level_is_the_one_in_use(void **state)
{
    static const char *const names[] = {"avx512", "avx2", "c"};
    const char *best = NULL;
    for (size_t i = 0; i < 3; i++) {
        if (!kernels_select(names[i])) {
            printf("this CPU has no %s\n", names[i]);
            continue;
        }
        assert_string_equal(kernels_level(), names[i]);
        best = best ? best : names[i];
    }
    assert_true(kernels_select("auto"));
    assert_string_equal(kernels_level(), best);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_use_takes_the_level_of_ring_simd),
        cmocka_unit_test(test_first_use_without_ring_simd_takes_the_best),
        cmocka_unit_test(test_first_use_with_an_unknown_level_says_so_once),
        cmocka_unit_test(test_unknown_level_is_refused_and_changes_nothing),
        cmocka_unit_test(test_selected_level_is_the_one_in_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
