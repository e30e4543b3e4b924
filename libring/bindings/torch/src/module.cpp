// SPDX-License-Identifier: Apache-2.0
// Defines the compiled module _C of the Python package ring_torch.
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "backend.h"
#include "block_cache.h"
#include "completer.h"
#include "memory.h"

namespace py = pybind11;
using ring_torch::BlockCache;
using ring_torch::ProcessGroupRing;

static void define_memory(py::module_ &module)
{
    module.def("enter_memory", &ring_torch::enter_memory);
    module.def("leave_memory", &ring_torch::leave_memory);
    module.def("is_shared", &ring_torch::is_shared, py::arg("tensor"));
    module.def(
        "empty_cache", [] { BlockCache::get().empty(); }, py::call_guard<py::gil_scoped_release>());
    module.def("memory_stats", [] {
        BlockCache::Stats stats = BlockCache::get().stats();
        py::dict result;
        result["reserved_bytes"] = stats.reserved;
        result["used_bytes"] = stats.used;
        result["requests"] = stats.requests;
        result["allocations"] = stats.allocations;
        result["refusals"] = stats.refusals;
        return result;
    });
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module)
{
    module.doc() = "libring's backend of torch.distributed";
    module.def("stop_completer", &ring_torch::stop_completer,
               py::call_guard<py::gil_scoped_release>());
    define_memory(module);
    py::class_<ProcessGroupRing, c10d::Backend, c10::intrusive_ptr<ProcessGroupRing>>(
        module, "ProcessGroupRing", "Collectives of libring for tensors on the CPU.")
        .def(py::init([](const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
                         std::chrono::milliseconds timeout) {
                 return c10::make_intrusive<ProcessGroupRing>(store, rank, size, timeout);
             }),
             py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"),
             py::call_guard<py::gil_scoped_release>());
}
