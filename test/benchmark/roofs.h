// What this machine can do at most, measured in the run that a benchmark compares with it.
#pragma once

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "common/base/check.h"
#include "test/benchmark/bench_run.h"

namespace cistern {

inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// GB/s at which one thread copies rows of `row_bytes` from one buffer of `bytes` to another, both
// touched before.
inline double CopyRate(size_t bytes, size_t row_bytes) {
  std::vector<char> from(bytes, 1), to(bytes, 2);
  const Clock::time_point start = Clock::now();
  for (size_t at = 0; at + row_bytes <= bytes; at += row_bytes) {
    std::memcpy(to.data() + at, from.data() + at, row_bytes);
  }
  return static_cast<double>(bytes) / SecondsSince(start) / 1e9;
}

// Millions of random 64-byte reads per second by `threads` threads from a buffer of `bytes`.
inline double RandomReads(size_t bytes, int threads) {
  constexpr size_t kReads = 8u << 20;
  char* base = static_cast<char*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CISTERN_CHECK(base != MAP_FAILED);
  madvise(base, bytes, MADV_HUGEPAGE);
  std::memset(base, 1, bytes);
  std::vector<std::thread> pool;
  std::vector<uint64_t> sums(static_cast<size_t>(threads));
  const Clock::time_point start = Clock::now();
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] {
      const uint64_t lines = bytes / 64;
      uint64_t x = 88172645463325252ull + static_cast<uint64_t>(t), sum = 0;
      uint64_t ring[16] = {};
      for (size_t i = 0; i < kReads; ++i) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        const uint64_t next =
            static_cast<uint64_t>((static_cast<unsigned __int128>(x) * lines) >> 64) * 64;
        __builtin_prefetch(base + next);
        uint64_t word;
        std::memcpy(&word, base + ring[i % 16], sizeof(word));
        sum += word;
        ring[i % 16] = next;
      }
      sums[static_cast<size_t>(t)] = sum;
    });
  }
  for (std::thread& thread : pool) thread.join();
  const double rate = static_cast<double>(kReads) * threads / SecondsSince(start) / 1e6;
  munmap(base, bytes);
  return rate;
}

// GB/s of one TCP stream over loopback, with writes of 256 KiB.
inline double LoopbackStream() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  CISTERN_CHECK(bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
  CISTERN_CHECK(listen(listener, 1) == 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  constexpr size_t kChunk = 256u << 10, kTotal = 4ull << 30;
  const Clock::time_point start = Clock::now();
  std::thread sender([&] {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    CISTERN_CHECK(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    std::vector<char> chunk(kChunk, 1);
    for (size_t sent = 0; sent < kTotal;) {
      const ssize_t n = write(fd, chunk.data(), kChunk);
      CISTERN_CHECK(n > 0);
      sent += static_cast<size_t>(n);
    }
    close(fd);
  });
  const int fd = accept(listener, nullptr, nullptr);
  std::vector<char> chunk(kChunk);
  size_t received = 0;
  for (ssize_t n = read(fd, chunk.data(), kChunk); n > 0; n = read(fd, chunk.data(), kChunk)) {
    received += static_cast<size_t>(n);
  }
  sender.join();
  close(fd);
  close(listener);
  return static_cast<double>(received) / SecondsSince(start) / 1e9;
}

}  // namespace cistern
