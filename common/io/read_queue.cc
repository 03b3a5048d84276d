#include "common/io/read_queue.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>

#ifdef CISTERN_HAS_LIBURING
#include <liburing.h>
#endif

namespace cistern {
namespace {

// Measured on a virtio disk: 64 requests in flight reach 95 k reads of 4 KiB a second, 128 reach
// 116 k and 256 134 k; threads with 16 reach 71 k.
constexpr unsigned kDepth = 256;
constexpr int kThreads = 16;

size_t ReadOne(int fd, const ReadRequest& request) {
  size_t done = 0;
  while (done < request.size) {
    const ssize_t got = pread(fd, request.out + done, request.size - done,
                              static_cast<off_t>(request.offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

}  // namespace

#ifdef CISTERN_HAS_LIBURING

class ReadQueue::Ring {
 public:
  // Null: the system refuses it.
  static std::unique_ptr<Ring> Create() {
    std::unique_ptr<Ring> ring(new Ring);
    if (io_uring_queue_init(kDepth, &ring->ring_, 0) < 0) return nullptr;
    ring->open_ = true;
    return ring;
  }
  ~Ring() {
    if (open_) io_uring_queue_exit(&ring_);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Returns once nothing is in flight. False: the ring failed and must not be used again; some
  // requests were not read.
  bool Read(int fd, absl::Span<const ReadRequest> requests, std::vector<size_t>* got) {
    size_t next = 0, in_flight = 0;
    bool good = true;
    while (in_flight > 0 || (good && next < requests.size())) {
      for (; good && next < requests.size() && in_flight < kDepth; ++next, ++in_flight) {
        io_uring_sqe* entry = io_uring_get_sqe(&ring_);
        if (entry == nullptr) break;
        const ReadRequest& request = requests[next];
        io_uring_prep_read(entry, fd, request.out, static_cast<unsigned>(request.size),
                           request.offset);
        io_uring_sqe_set_data64(entry, next);
      }
      io_uring_cqe* done = nullptr;
      const int sent =
          good ? io_uring_submit_and_wait(&ring_, 1) : io_uring_wait_cqe(&ring_, &done);
      if (good && sent < 0 && sent != -EINTR && sent != -EAGAIN && sent != -EBUSY) {
        // The kernel refuses more reads; those it accepted still write to the caller's memory.
        good = false;
        in_flight -= std::min<size_t>(in_flight, io_uring_sq_ready(&ring_));
      }
      while (io_uring_peek_cqe(&ring_, &done) == 0) {
        if (done->res > 0) (*got)[done->user_data] = static_cast<size_t>(done->res);
        io_uring_cqe_seen(&ring_, done);
        --in_flight;
      }
    }
    return good;
  }

 private:
  Ring() = default;
  io_uring ring_;
  bool open_ = false;
};

#else

class ReadQueue::Ring {
 public:
  static std::unique_ptr<Ring> Create() { return nullptr; }
  bool Read(int, absl::Span<const ReadRequest>, std::vector<size_t>*) { return false; }
};

#endif

ReadQueue::ReadQueue() = default;
ReadQueue::~ReadQueue() = default;

std::unique_ptr<ReadQueue::Ring> ReadQueue::TakeRing() {
  absl::MutexLock lock(&mutex_);
  if (refused_) return nullptr;
  if (idle_.empty()) {
    std::unique_ptr<Ring> ring = Ring::Create();
    refused_ = ring == nullptr;
    return ring;
  }
  std::unique_ptr<Ring> ring = std::move(idle_.back());
  idle_.pop_back();
  return ring;
}

void ReadQueue::Read(int fd, absl::Span<const ReadRequest> requests, std::vector<size_t>* got) {
  got->assign(requests.size(), 0);
  if (requests.size() == 1) {
    (*got)[0] = ReadOne(fd, requests[0]);
    return;
  }
  std::unique_ptr<Ring> ring = TakeRing();
  if (ring == nullptr) return ReadByThreads(fd, requests, got);
  if (!ring->Read(fd, requests, got)) return ReadByThreads(fd, requests, got);
  absl::MutexLock lock(&mutex_);
  idle_.push_back(std::move(ring));
}

void ReadQueue::ReadByThreads(int fd, absl::Span<const ReadRequest> requests,
                              std::vector<size_t>* got) {
  ThreadPool* threads;
  {
    absl::MutexLock lock(&mutex_);
    if (threads_ == nullptr) threads_ = std::make_unique<ThreadPool>(kThreads);
    threads = threads_.get();
  }
  threads->ParallelFor(requests.size(), [&](size_t i) { (*got)[i] = ReadOne(fd, requests[i]); });
}

}  // namespace cistern
