/* SPDX-License-Identifier: Apache-2.0
 * Distances in a made tree: two sockets, of which the first has two bridges, below one of these two
 * switches in a row. */
#include "pci_distance.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit_test.h"

static char root[] = "/tmp/ring_pci_XXXXXX";

static const char *at_root(const char *path)
{
    static char full[600];
    snprintf(full, sizeof full, "%s%s", root, path);
    return full;
}

static void make_folders(const char *path)
{
    char part[512];
    for (size_t i = 1; i <= strlen(path); i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        snprintf(part, sizeof part, "%.*s", (int)i, path);
        mkdir(at_root(part), 0700);
    }
}

static void add(const char *path, const char *numa)
{
    char folder[256], link[256], target[512];
    snprintf(folder, sizeof folder, "/sys/devices/%s", path);
    snprintf(target, sizeof target, "../../../devices/%s", path);
    snprintf(link, sizeof link, "/sys/bus/pci/devices%s", strrchr(path, '/'));
    make_folders(folder);
    assert_int_equal(symlink(target, at_root(link)), 0);
    strcat(folder, "/numa_node");
    FILE *file = fopen(at_root(folder), "w");
    assert_non_null(file);
    fputs(numa, file);
    fclose(file);
}

#define PORT "pci0000:00/0000:00:01.0/"
#define SWITCH PORT "0000:01:00.0/"
#define BEHIND SWITCH "0000:02:01.0/0000:04:00.0/"

static int make_tree(void **state)
{
    if (mkdtemp(root) == NULL)
        return -1;
    make_folders("/sys/bus/pci/devices");
    add(SWITCH "0000:02:00.0/0000:03:00.0", "0\n");      /* the GPU */
    add(BEHIND "0000:05:00.0/0000:06:00.0", "0\n");      /* behind the second switch */
    add(BEHIND "0000:05:01.0/0000:07:00.0", "0\n");      /* beside that */
    add(SWITCH "0000:02:02.0/0000:08:00.0", "0\n");      /* at the GPU's switch */
    add("pci0000:00/0000:00:02.0/0000:3b:00.0", "0\n");  /* at the same bridge of the host */
    add("pci0000:40/0000:40:01.0/0000:41:00.0", "0\n");  /* at the socket's other one */
    add("pci0000:80/0000:80:01.0/0000:81:00.0", "1\n");  /* at the other socket */
    add("pci0001:00/0001:00:01.0/0001:01:00.0", "-1\n"); /* who knows where */
    return 0;
}

static int take_away(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    return remove(path);
}

static int remove_tree(void **state)
{
    return nftw(root, take_away, 16, FTW_DEPTH | FTW_PHYS);
}

static pci_distance from_gpu(const char *address)
{
    const pci_place gpu = pci_place_at(root, "0000:03:00.0"), other = pci_place_at(root, address);
    assert_int_equal(pci_distance_between(&gpu, &other), pci_distance_between(&other, &gpu));
    return pci_distance_between(&gpu, &other);
}

static void distances_grow_with_what_lies_between(void **state)
{
    assert_int_equal(from_gpu("0000:08:00.0"), PCI_PIX);
    assert_int_equal(from_gpu("0000:06:00.0"), PCI_PXB);
    assert_int_equal(from_gpu("0000:3b:00.0"), PCI_PHB);
    assert_int_equal(from_gpu("0000:41:00.0"), PCI_NODE);
    assert_int_equal(from_gpu("0000:81:00.0"), PCI_SYS);
    assert_int_equal(from_gpu("0001:01:00.0"), PCI_NODE);
    const pci_place a = pci_place_at(root, "0000:06:00.0"), b = pci_place_at(root, "0000:07:00.0");
    assert_int_equal(pci_distance_between(&a, &b), PCI_PIX);
}

static void places_are_found(void **state)
{
    const pci_place upper = pci_place_at(root, "0000:3B:00.0");
    assert_string_equal(upper.path, "pci0000:00/0000:00:02.0/0000:3b:00.0");
    assert_int_equal(upper.numa, 0);
    const pci_place none = pci_place_at(root, "0000:ff:00.0");
    assert_string_equal(none.path, "");
    assert_int_equal(none.numa, -1);
    make_folders("/sys/class/infiniband/mlx5_0");
    assert_int_equal(symlink("../../../devices/pci0000:80/0000:80:01.0/0000:81:00.0",
                             at_root("/sys/class/infiniband/mlx5_0/device")),
                     0);
    const pci_place folder = pci_place_of(root, "/sys/class/infiniband/mlx5_0/device");
    assert_string_equal(folder.path, "pci0000:80/0000:80:01.0/0000:81:00.0");
    assert_int_equal(folder.numa, 1);
}

static void levels_are_nccls(void **state)
{
    static const struct {
        const char *word;
        pci_distance means;
    } rows[] = {{"LOC", PCI_LOC}, {"PIX", PCI_PIX}, {"pxb", PCI_PXB}, {"PHB", PCI_NODE},
                {"SYS", PCI_SYS}, {"0", PCI_LOC},   {"2", PCI_PXB},   {"3", PCI_NODE},
                {"4", PCI_NODE},  {"5", PCI_SYS}};
    pci_distance level;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(pci_distance_parse(rows[i].word, &level));
        assert_int_equal(level, rows[i].means);
    }
    assert_false(pci_distance_parse("NODE", &level));
    assert_false(pci_distance_parse("6", &level));
    assert_false(pci_distance_parse("10", &level));
    assert_false(pci_distance_parse("", &level));
    assert_string_equal(pci_distance_word(PCI_PXB), "PXB");
    assert_string_equal(pci_distance_word(PCI_SYS), "SYS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_grow_with_what_lies_between),
        cmocka_unit_test(places_are_found),
        cmocka_unit_test(levels_are_nccls),
    };
    return cmocka_run_group_tests_name("util.pci_distance", tests, make_tree, remove_tree);
}
