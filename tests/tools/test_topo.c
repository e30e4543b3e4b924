/* SPDX-License-Identifier: Apache-2.0
 * Checks that facts about the machine agree with other sources of the system. */
#include "topo.h"

#include <string.h>
#include <unistd.h>

#include "unit_test.h"

static void cores_share_out_the_cpus_we_may_use(void **state)
{
    topo_cpu cpu;
    cpu_set_t allowed, seen;
    CPU_ZERO(&seen);
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    assert_int_equal(topo_cpu_read(&cpu), RING_OK);
    assert_int_equal(cpu.allowed, CPU_COUNT(&allowed));
    assert_in_range(cpu.core_count, 1, (size_t)cpu.allowed);
    for (size_t i = 0; i < cpu.core_count; i++) {
        cpu_set_t both;
        CPU_AND(&both, &seen, &cpu.cores[i].cpus);
        assert_int_equal(CPU_COUNT(&both), 0);
        assert_true(CPU_COUNT(&cpu.cores[i].cpus) > 0);
        CPU_OR(&seen, &seen, &cpu.cores[i].cpus);
    }
    assert_true(CPU_EQUAL(&seen, &allowed));
    assert_true(cpu.packages >= 1 && cpu.numas >= 1);
    assert_true(cpu.quota >= 0);
    topo_cpu_free(&cpu);
}

static void one_allowed_cpu_is_one_core(void **state)
{
    topo_cpu cpu;
    cpu_set_t before, one;
    size_t first = 0;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    while (!CPU_ISSET(first, &before))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(topo_cpu_read(&cpu), RING_OK);
    sched_setaffinity(0, sizeof before, &before);
    assert_int_equal(cpu.core_count, 1);
    assert_true(CPU_EQUAL(&cpu.cores[0].cpus, &one));
    topo_cpu_free(&cpu);
}

static void memory_is_what_the_system_says(void **state)
{
    topo_memory memory;
    topo_memory_read(&memory);
    const size_t pages = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    assert_int_equal(memory.total, pages);
    assert_in_range(memory.available, 1, memory.total);
    assert_true(memory.limit < memory.total);
}

static void the_loopback_is_there_and_not_public(void **state)
{
    topo_net net;
    assert_int_equal(topo_net_read(&net), RING_OK);
    size_t loopbacks = 0;
    for (size_t i = 0; i < net.count; i++) {
        assert_true(net.interfaces[i].name[0] != '\0');
        assert_true(net.interfaces[i].speed_mbits == -1 || net.interfaces[i].speed_mbits > 0);
        loopbacks += net.interfaces[i].loopback;
    }
    assert_int_equal(loopbacks, 1);
    const char *public = topo_net_public_address(&net);
    assert_true(public == NULL || strcmp(public, "127.0.0.1") != 0);
    topo_net_free(&net);
}

static void the_name_is_cut_to_fit(void **state)
{
    char name[256], cut[3] = "xx";
    topo_hostname(name, sizeof name);
    assert_true(name[0] != '\0');
    topo_hostname(cut, sizeof cut);
    assert_true(strlen(cut) < sizeof cut);
}

static void devices_are_counted_and_described(void **state)
{
    topo_device devices[TOPO_DEVICES];
    const size_t gpus = topo_gpus(devices);
    for (size_t i = 0; i < min_size(gpus, TOPO_DEVICES); i++)
        assert_true(devices[i].name[0] != '\0');
    const size_t adapters = topo_infiniband(devices);
    assert_int_equal(adapters > 0, access("/sys/class/infiniband", F_OK) == 0 && adapters > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cores_share_out_the_cpus_we_may_use),
        cmocka_unit_test(one_allowed_cpu_is_one_core),
        cmocka_unit_test(memory_is_what_the_system_says),
        cmocka_unit_test(the_loopback_is_there_and_not_public),
        cmocka_unit_test(the_name_is_cut_to_fit),
        cmocka_unit_test(devices_are_counted_and_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
