// SPDX-License-Identifier: Apache-2.0
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
            // A work that ended is dropped without the lock, because freeing a tensor may need the
            // interpreter.
            std::erase_if(under_way, [](auto &operation) { return operation->wait(0); });
            if (calls_need_a_waiter_ && !under_way.empty())
                under_way.front()->wait(0.01);
        }
        // The tensors of the remaining operations are still in use, so they are never freed.
        keep_for_ever(std::move(under_way));
    }

    // Sleeps until an operation was added or a call has ended. False: the thread must end.
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

    // Without libring's own thread a call advances only while a thread is in libring.
    const bool calls_need_a_waiter_ = [] {
        const char *progress = std::getenv("RING_PROGRESS");
        return progress && std::strcmp(progress, "none") == 0;
    }();
    std::mutex mutex_;
    std::condition_variable wake_;
    std::list<std::shared_ptr<Operation>> added_;
    bool news_ = false, busy_ = false, stopping_ = false;
    std::thread thread_; // last: it uses the others
};

std::mutex completer_mutex;
std::atomic<Completer *> completer{nullptr}; // never deleted
bool stopped;

// A forked child does not have the thread, and another thread may have held the lock during the
// fork.
const int watching = pthread_atfork(nullptr, nullptr, [] {
    new (&completer_mutex) std::mutex;
    completer = nullptr;
});

// Null after stop_completer(), and if the thread cannot be created.
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
