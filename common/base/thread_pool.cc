#include "common/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>

#include "absl/synchronization/blocking_counter.h"

namespace cistern {

ThreadPool::ThreadPool(int thread_num) {
  try {
    for (int i = 0; i < std::max(thread_num, 1); ++i) threads_.emplace_back([this] { Work(); });
  } catch (...) {
    if (threads_.empty()) throw;
  }
}

ThreadPool::~ThreadPool() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::Run(std::function<void()> work) {
  absl::MutexLock lock(&mutex_);
  queue_.push_back(std::move(work));
}

void ThreadPool::ParallelFor(size_t n, const std::function<void(size_t)>& body) {
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr failure;  // written by the share that sets `failed` first
  const auto share = [&] {
    try {
      for (size_t k = next++; k < n && !failed; k = next++) body(k);
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  };
  const int shares = static_cast<int>(std::min<size_t>(n, threads_.size()));
  absl::BlockingCounter left(shares);
  for (int i = 0; i < shares; ++i) {
    try {
      Run([&] {
        share();
        left.DecrementCount();
      });
    } catch (const std::bad_alloc&) {  // the queue cannot grow: the caller does this share
      share();
      left.DecrementCount();
    }
  }
  left.Wait();
  if (failure != nullptr) std::rethrow_exception(failure);
}

void ThreadPool::Work() {
  while (true) {
    std::function<void()> work;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &ThreadPool::HasWork));
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

}  // namespace cistern
