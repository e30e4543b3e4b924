// SPDX-License-Identifier: Apache-2.0
// Implements the thread that completes operations, and its start, fork and end.
#include "completer.h"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <list>
#include <system_error>
#include <thread>

#include <c10/util/thread_name.h>

namespace ring_torch
{

namespace
{

void keep_for_ever(std::list<std::shared_ptr<Operation>> operations)
{
    new std::list<std::shared_ptr<Operation>>(std::move(operations));
}

class Completer
{
  public:
    Completer() : thread_([this] { run(); })
    {
    }

    void add(std::shared_ptr<Operation> operation)
    {
        std::lock_guard lock(mutex_);
        added_.push_back(std::move(operation));
        news_ = true;
        wake_.notify_one();
    }

    void call_ended()
    {
        std::lock_guard lock(mutex_);
        news_ = true;
        if (busy_)
            wake_.notify_one();
    }

    void stop()
    {
        {
            std::lock_guard lock(mutex_);
            stopping_ = news_ = true;
            wake_.notify_one();
        }
        thread_.join();
    }

  private:
    void run()
    {
        c10::setThreadName("ring_completer");
        std::list<std::shared_ptr<Operation>> under_way;
        while (wait_for_news(under_way)) {
            // Operations that have ended are dropped without the mutex, because freeing a tensor
            // may need the interpreter's lock.
            std::erase_if(under_way, [](auto &operation) { return operation->wait(0); });
            if (calls_need_a_waiter_ && !under_way.empty())
                under_way.front()->wait(0.01);
        }
        // Calls may still use the tensors of the remaining operations, so they are never freed.
        keep_for_ever(std::move(under_way));
    }

    // Sleeps until an operation was added or a call has ended. Returns false if the thread must
    // end.
    bool wait_for_news(std::list<std::shared_ptr<Operation>> &under_way)
    {
        std::unique_lock lock(mutex_);
        busy_ = !under_way.empty();
        if (!(calls_need_a_waiter_ && busy_))
            wake_.wait(lock, [this] { return news_; });
        news_ = false;
        under_way.splice(under_way.end(), added_);
        busy_ = !under_way.empty();
        return !stopping_;
    }

    // With RING_PROGRESS=none libring has no progress thread, and calls progress only while another
    // thread waits in libring.
    const bool calls_need_a_waiter_ = [] {
        const char *progress = std::getenv("RING_PROGRESS");
        return progress && std::strcmp(progress, "none") == 0;
    }();
    std::mutex mutex_;
    std::condition_variable wake_;
    std::list<std::shared_ptr<Operation>> added_;
    bool news_ = false, busy_ = false, stopping_ = false;
    std::thread thread_; // the last member, because the thread uses the others
};

std::mutex completer_mutex;
std::atomic<Completer *> completer{nullptr}; // never deleted
bool stopped;

// A forked child does not have the thread, and another thread of the parent may have held the mutex
// during the fork.
const int watching = pthread_atfork(nullptr, nullptr, [] {
    new (&completer_mutex) std::mutex;
    completer = nullptr;
});

// Returns the completer, which the first call makes. Null after stop_completer(), and if the thread
// cannot be created.
Completer *the_completer()
try {
    std::lock_guard lock(completer_mutex);
    (void)watching;
    if (!completer && !stopped)
        completer = new Completer;
    return completer;
} catch (const std::system_error &) {
    return nullptr;
}

} // namespace

bool complete_later(std::shared_ptr<Operation> operation)
{
    if (Completer *it = the_completer()) {
        it->add(std::move(operation));
        return true;
    }
    keep_for_ever({std::move(operation)});
    return false;
}

void call_has_ended(void *, ring_status)
{
    if (Completer *it = completer)
        it->call_ended();
}

void stop_completer()
{
    Completer *it;
    {
        std::lock_guard lock(completer_mutex);
        stopped = true;
        it = completer.exchange(nullptr);
    }
    if (it)
        it->stop();
}

} // namespace ring_torch
