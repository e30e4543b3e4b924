// SPDX-License-Identifier: Apache-2.0
// Implements sends and receives, which are matched by their tags, and coalesced calls.
#include "backend.h"

namespace ring_torch
{

WorkPtr ProcessGroupRing::send(Tensors &tensors, int peer, int tag)
{
    const at::Tensor &tensor = only_tensor(tensors, "send");
    Request request{c10d::OpType::SEND, "ring:send"};
    const Elements elements = moved_elements(tensor.scalar_type());
    const void *src = request.buffers.input(tensor);
    const size_t count = tensor.numel() * elements.each;
    request.inputs = tensors;
    request.result = tensors;
    return run(std::move(request), [=](ring_comm *comm, Starter &starter) {
        return ring_send(src, count, elements.dtype, peer, comm, starter.next(tag, false));
    });
}

WorkPtr ProcessGroupRing::recv(Tensors &tensors, int peer, int tag)
{
    return receive(tensors, peer, tag, c10d::OpType::RECV, "ring:recv");
}

WorkPtr ProcessGroupRing::recvAnysource(Tensors &tensors, int tag)
{
    return receive(tensors, RING_ANY_SOURCE, tag, c10d::OpType::RECVANYSOURCE,
                   "ring:recvAnySource");
}

WorkPtr ProcessGroupRing::receive(Tensors &tensors, int peer, int tag, c10d::OpType type,
                                  const char *title)
{
    const at::Tensor &tensor = only_tensor(tensors, "recv");
    Request request{type, title};
    const Elements elements = moved_elements(tensor.scalar_type());
    void *dst = request.buffers.output(tensor);
    const size_t count = tensor.numel() * elements.each;
    request.inputs = tensors;
    request.result = tensors;
    return run(std::move(request), [=](ring_comm *comm, Starter &starter) {
        return ring_recv(dst, count, elements.dtype, peer, comm, starter.next(tag, true));
    });
}

// Until endCoalescing(), requests are only stored and not started, so that an exception in between
// leaves no libring group open.
void ProcessGroupRing::startCoalescing()
{
    coalesced_ = std::make_unique<Coalesced>();
    coalesced_->thread = std::this_thread::get_id();
}

WorkPtr ProcessGroupRing::endCoalescing()
{
    TORCH_CHECK(coalesces(), "ring: endCoalescing without startCoalescing in this thread");
    auto coalesced = std::exchange(coalesced_, nullptr);
    Request all{c10d::OpType::COALESCED, "ring:coalesced"};
    for (Request &request : coalesced->requests) {
        all.timeout = std::max(all.timeout, request.timeout);
        all.buffers.add(std::move(request.buffers));
        all.inputs.insert(all.inputs.end(), request.inputs.begin(), request.inputs.end());
        all.result.insert(all.result.end(), request.result.begin(), request.result.end());
    }
    const Communicator::Use comm(communicator_);
    return go_on(std::move(all), [&](Starter &starter) {
        return together(coalesced->calls, [&](const Calls &calls) {
            Starter own = starter; // calls must not share their options
            return calls(comm, own);
        });
    });
}

} // namespace ring_torch
