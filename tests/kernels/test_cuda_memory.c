/* SPDX-License-Identifier: Apache-2.0
 * Sharing memory of a GPU with adapters, over the double of NVIDIA's driver: which calls, with
 * what. Usage: test_kernels.cuda_memory present|old|no_device|absent */
#include "cuda_memory.h"
#include "fake_cuda.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit_test.h"

enum { BYTES = 10000, PAGE = 4096, NOT_SUPPORTED = 801, UNKNOWN = 999 };

static __typeof__(&fake_cuda_alloc) cuda_alloc;
static __typeof__(&fake_cuda_free) cuda_free;
static __typeof__(&fake_cuda_set) cuda_set;
static __typeof__(&fake_cuda_fail) cuda_fail;
static __typeof__(&fake_cuda_counters) cuda_counters;

static void take(void *function, const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *found = library != NULL ? dlsym(library, name) : NULL;
    if (found == NULL) {
        printf("SKIPPED: libcuda.so.1 is not the double of NVIDIA's driver\n");
        exit(77);
    }
    memcpy(function, &found, sizeof found);
}

static void take_all(void)
{
    take(&cuda_alloc, "fake_cuda_alloc");
    take(&cuda_free, "fake_cuda_free");
    take(&cuda_set, "fake_cuda_set");
    take(&cuda_fail, "fake_cuda_fail");
    take(&cuda_counters, "fake_cuda_counters");
}

static fake_cuda_counts counts(void)
{
    fake_cuda_counts now;
    cuda_counters(&now);
    return now;
}

/* A root in which nvidia-peermem is loaded, and the GPU is there. */
static const char *with_peermem(void)
{
    static char root[] = "/tmp/ring_peermem_XXXXXX", path[128];
    if (path[0] != '\0')
        return root;
    assert_non_null(mkdtemp(root));
    static const char *const folders[] = {"/sys",
                                          "/sys/module",
                                          "/sys/module/nvidia_peermem",
                                          "/sys/devices",
                                          "/sys/devices/pci0000:3a",
                                          "/sys/devices/pci0000:3a/0000:3b:00.0",
                                          "/sys/bus",
                                          "/sys/bus/pci",
                                          "/sys/bus/pci/devices"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s%s", root, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    snprintf(path, sizeof path, "%s/sys/bus/pci/devices/0000:3b:00.0", root);
    assert_int_equal(symlink("../../../devices/pci0000:3a/0000:3b:00.0", path), 0);
    snprintf(path, sizeof path, "%s/sys/module/nvidia_peermem/version", root);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("550.54.14\n", file);
    fclose(file);
    return root;
}

static void remove_peermem(void)
{
    char path[128];
    snprintf(path, sizeof path, "rm -r %s", with_peermem());
    assert_int_equal(system(path), 0);
}

static void open_gpu(cuda_device *c, const char *root)
{
    assert_int_equal(cuda_memory_open(0, root, c), RING_OK);
}

/* ---- With a driver ---- */

static void its_place_and_name_are_known(void **state)
{
    cuda_device c;
    open_gpu(&c, with_peermem());
    assert_string_equal(c.base.place(&c.base)->path, "pci0000:3a/0000:3b:00.0");
    assert_int_equal(c.base.place(&c.base)->numa, -1);
    assert_string_equal(c.base.name, "CUDA device 0");
    assert_int_equal(counts().retains, counts().releases + 1);
    cuda_memory_close(&c);
    assert_int_equal(counts().retains, counts().releases);
    assert_int_equal(cuda_memory_open(3, "", &c), RING_ERR_SYSTEM);
    assert_string_equal(fail_text(),
                        "finding the GPU (cuDeviceGet): invalid device ordinal (CUDA error 101)");
}

static void a_dmabuf_is_of_whole_pages(void **state)
{
    accelerator_share share;
    cuda_device c;
    open_gpu(&c, "/nowhere");
    char *memory = cuda_alloc(BYTES);
    const uint64_t copies = counts().sync_memops;
    assert_int_equal((uintptr_t)memory % PAGE, 512);
    assert_int_equal(c.base.share(&c.base, memory, BYTES, &share), RING_OK);
    assert_true(fcntl(share.dmabuf, F_GETFD) >= 0);
    assert_int_equal(share.offset, 512);
    assert_false(share.by_address);
    assert_int_equal(counts().range, (uintptr_t)memory - 512);
    assert_int_equal(counts().range_bytes, 3 * PAGE);
    assert_int_equal(counts().sync_memops, copies + 1);
    close(share.dmabuf);
    cuda_free(memory);
    cuda_memory_close(&c);
}

static void a_gpu_without_dmabufs_is_known_by_its_addresses(void **state)
{
    accelerator_share share;
    const int before = cuda_set(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0);
    cuda_device c;
    open_gpu(&c, with_peermem());
    char *memory = cuda_alloc(BYTES);
    const fake_cuda_counts at_first = counts();
    assert_int_equal(c.base.share(&c.base, memory, BYTES, &share), RING_OK);
    assert_int_equal(share.dmabuf, -1);
    assert_true(share.by_address);
    assert_int_equal(counts().handles, at_first.handles);
    assert_int_equal(counts().sync_memops, at_first.sync_memops + 1);
    cuda_memory_close(&c);
    open_gpu(&c, "/nowhere");
    assert_int_equal(c.base.share(&c.base, memory, BYTES, &share), RING_ERR_UNSUPPORTED);
    assert_non_null(strstr(fail_text(), "nvidia-peermem"));
    (void)cuda_set(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, before);
    cuda_free(memory);
    cuda_memory_close(&c);
}

static void what_cuda_refuses_is_told(void **state)
{
    accelerator_share share;
    cuda_device c, other;
    open_gpu(&c, "/nowhere");
    open_gpu(&other, with_peermem());
    char *memory = cuda_alloc(BYTES);
    cuda_fail("cuMemGetHandleForAddressRange", NOT_SUPPORTED);
    assert_int_equal(c.base.share(&c.base, memory, BYTES, &share), RING_ERR_SYSTEM);
    assert_string_equal(fail_text(), "asking for a dma-buf (cuMemGetHandleForAddressRange): "
                                     "operation not supported (CUDA error 801)");
    assert_int_equal(other.base.share(&other.base, memory, BYTES, &share), RING_OK);
    assert_true(share.dmabuf == -1 && share.by_address);
    cuda_fail("cuPointerSetAttribute", UNKNOWN);
    assert_int_equal(other.base.share(&other.base, memory, BYTES, &share), RING_ERR_SYSTEM);
    assert_non_null(strstr(fail_text(), "unknown to this driver (CUDA error 999)"));
    cuda_fail("", 0);
    cuda_free(memory);
    cuda_memory_close(&c);
    cuda_memory_close(&other);
}

static void writes_are_flushed_in_the_gpus_context(void **state)
{
    cuda_device c;
    open_gpu(&c, "/nowhere");
    const uint64_t before = counts().flushes;
    assert_int_equal(c.base.flush(&c.base, NULL, 0), RING_OK);
    assert_int_equal(counts().flushes, before + 1);
    assert_int_equal(counts().contexts_left, 0);
    cuda_fail("cuFlushGPUDirectRDMAWrites", NOT_SUPPORTED);
    assert_int_equal(c.base.flush(&c.base, NULL, 0), RING_ERR_SYSTEM);
    assert_non_null(strstr(fail_text(), "operation not supported"));
    assert_int_equal(counts().contexts_left, 0);
    cuda_fail("cuCtxPushCurrent_v2", 201);
    assert_int_equal(c.base.flush(&c.base, NULL, 0), RING_ERR_SYSTEM);
    assert_int_equal(counts().flushes, before + 1);
    cuda_fail("", 0);
    cuda_memory_close(&c);
}

/* Flushes are for GPUs that need them and can; one that needs them and cannot shares nothing. */
static void flushes_are_as_the_gpu_is(void **state)
{
    static const struct {
        int ordering, options;
        bool shares, flushes;
    } rows[] = {{0, 1, true, true},    {0, 0, false, false},  {0, 2, false, false},
                {100, 1, true, false}, {100, 0, true, false}, {200, 0, true, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)cuda_set(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, rows[i].ordering);
        (void)cuda_set(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, rows[i].options);
        cuda_device c;
        open_gpu(&c, "/nowhere");
        assert_int_equal(c.base.share != NULL, rows[i].shares);
        assert_int_equal(c.base.flush != NULL, rows[i].flushes);
        cuda_memory_close(&c);
    }
    (void)cuda_set(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, 0);
    (void)cuda_set(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 1);
}

/* ---- With an old one, or none ---- */

static void an_old_driver_shares_what_it_can(void **state)
{
    accelerator_share share;
    cuda_device c;
    open_gpu(&c, with_peermem());
    assert_null(c.base.share); /* it cannot flush */
    cuda_memory_close(&c);
    (void)cuda_set(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, 100);
    open_gpu(&c, with_peermem());
    char *memory = cuda_alloc(BYTES);
    assert_int_equal(c.base.share(&c.base, memory, BYTES, &share), RING_OK);
    assert_true(share.dmabuf == -1 && share.by_address);
    cuda_free(memory);
    cuda_memory_close(&c);
}

static void without_a_gpu_it_says_so(void **state)
{
    cuda_device c;
    assert_int_equal(cuda_memory_open(0, "", &c), RING_ERR_UNSUPPORTED);
    assert_string_equal(fail_text(),
                        "CUDA does not start (cuInit): no CUDA-capable device is detected "
                        "(error 100); see 'nvidia-smi'");
}

static void without_a_driver_it_says_so(void **state)
{
    cuda_device c;
    if (dlopen("libcuda.so.1", RTLD_NOW) != NULL)
        skip_because("a libcuda.so.1 is installed here");
    assert_int_equal(cuda_memory_open(0, "", &c), RING_ERR_UNSUPPORTED);
    assert_non_null(strstr(fail_text(), "libcuda.so.1"));
    assert_non_null(strstr(fail_text(), "is NVIDIA's driver installed?"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest present[] = {
        cmocka_unit_test(its_place_and_name_are_known),
        cmocka_unit_test(a_dmabuf_is_of_whole_pages),
        cmocka_unit_test(a_gpu_without_dmabufs_is_known_by_its_addresses),
        cmocka_unit_test(what_cuda_refuses_is_told),
        cmocka_unit_test(writes_are_flushed_in_the_gpus_context),
        cmocka_unit_test(flushes_are_as_the_gpu_is),
    };
    const struct CMUnitTest old[] = {cmocka_unit_test(an_old_driver_shares_what_it_can)};
    const struct CMUnitTest no_device[] = {cmocka_unit_test(without_a_gpu_it_says_so)};
    const struct CMUnitTest absent[] = {cmocka_unit_test(without_a_driver_it_says_so)};
    const char *which = argc == 2 ? argv[1] : "";
    if (strcmp(which, "absent") == 0)
        return cmocka_run_group_tests(absent, NULL, NULL);
    take_all();
    if (strcmp(which, "no_device") == 0)
        return cmocka_run_group_tests(no_device, NULL, NULL);
    const int failed = strcmp(which, "old") == 0 ? cmocka_run_group_tests(old, NULL, NULL)
                                                 : cmocka_run_group_tests(present, NULL, NULL);
    remove_peermem();
    return failed;
}
