// SPDX-License-Identifier: Apache-2.0
// The compiled half of the Python package ring_torch.
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "backend.h"
#include "completer.h"

namespace py = pybind11;
using ring_torch::ProcessGroupRing;

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module)
{
    module.doc() = "libring's backend of torch.distributed";
    module.def("stop_completer", &ring_torch::stop_completer,
               py::call_guard<py::gil_scoped_release>());
    py::class_<ProcessGroupRing, c10d::Backend, c10::intrusive_ptr<ProcessGroupRing>>(
        module, "ProcessGroupRing", "Collectives of libring for tensors on the CPU.")
        .def(py::init([](const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
                         std::chrono::milliseconds timeout) {
                 return c10::make_intrusive<ProcessGroupRing>(store, rank, size, timeout);
             }),
             py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"),
             py::call_guard<py::gil_scoped_release>());
}
