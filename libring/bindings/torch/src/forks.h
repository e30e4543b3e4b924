// SPDX-License-Identifier: Apache-2.0
// Marks state that belongs to a process and not to its forked children.
#ifndef RING_TORCH_FORKS_H
#define RING_TORCH_FORKS_H

namespace ring_torch
{

/// Remembers the process that made it. A forked child does not have the communicators, calls and
/// threads of its parent, and a mutex may be locked there for ever. Never blocks.
class Owner
{
  public:
    Owner();
    /// False in forked children.
    bool is_this_process() const;

  private:
    unsigned forks_;
};

} // namespace ring_torch

#endif
