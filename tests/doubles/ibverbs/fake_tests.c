/* SPDX-License-Identifier: Apache-2.0
 * test_fake_ibverbs NAME. */
#include "fake_tests.h"

#include "../../transport/named.h"

#include <stdio.h>

int main(int argc, char **argv)
{
#define ROW(name) {#name, test_##name},
    static const named_test tests[] = {FAKE_TESTS(ROW)};
#undef ROW
    if (argc != 2) {
        fprintf(stderr, "usage: test_fake_ibverbs NAME\n");
        return 2;
    }
    return named_run(tests, sizeof tests / sizeof *tests, argv[1]);
}
