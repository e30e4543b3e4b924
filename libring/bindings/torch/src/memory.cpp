// SPDX-License-Identifier: Apache-2.0
// Implements an allocator for torch that takes memory from the block cache or from the previous
// allocator.
#include "memory.h"

#include <mutex>

#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>

#include "block_cache.h"

namespace ring_torch
{

namespace
{

thread_local int depth; // number of enter_memory() calls of this thread without leave_memory()

void release(void *memory);

/// Allocates from the cache while `depth` is not 0, otherwise with the previous allocator.
class SharedAllocator final : public c10::Allocator
{
  public:
    static SharedAllocator &get()
    {
        static auto *allocator = new SharedAllocator;
        return *allocator;
    }
    c10::DataPtr allocate(size_t bytes) override
    {
        if (depth == 0 || bytes == 0)
            return before_->allocate(bytes);
        void *memory = BlockCache::get().take(bytes);
        return memory ? c10::DataPtr(memory, memory, release, at::kCPU) : before_->allocate(bytes);
    }
    c10::DeleterFnPtr raw_deleter() const override
    {
        return before_->raw_deleter() ? release : nullptr;
    }
    void copy_data(void *to, const void *from, size_t bytes) const override
    {
        default_copy_data(to, from, bytes);
    }
    c10::Allocator &before() const
    {
        return *before_;
    }
    void install()
    {
        c10::SetCPUAllocator(this);
        TORCH_CHECK(c10::GetCPUAllocator() == this,
                    "ring_torch.memory(): cannot replace torch's CPU allocator, because another "
                    "library has installed one with a higher priority");
    }

  private:
    SharedAllocator() : before_(c10::GetCPUAllocator())
    {
    }

    c10::Allocator *before_;
};

// Frees memory that was allocated from the cache or with the previous allocator.
void release(void *memory)
{
    if (!BlockCache::get().give_back(memory))
        SharedAllocator::get().before().raw_deallocate(memory);
}

} // namespace

at::Tensor shared_tensor(int64_t numel, const at::TensorOptions &options)
{
    if (!options.device().is_cpu())
        return at::empty({numel}, options);
    struct Inside {
        Inside()
        {
            depth++;
        }
        ~Inside()
        {
            depth--;
        }
    } inside;
    return at::detail::empty_generic({numel}, &SharedAllocator::get(),
                                     c10::DispatchKeySet(c10::DispatchKey::CPU),
                                     c10::typeMetaToScalarType(options.dtype()), std::nullopt);
}

void enter_memory()
{
    static std::once_flag once;
    std::call_once(once, [] { SharedAllocator::get().install(); });
    depth++;
}

void leave_memory()
{
    TORCH_CHECK(depth > 0, "ring_torch.memory(): this thread is not inside such a block");
    depth--;
}

bool is_shared(const at::Tensor &tensor)
{
    return BlockCache::get().holds(tensor.const_data_ptr());
}

} // namespace ring_torch
