// Measures times on a GPU, relates them to the roofs that the same run measures, and reports JSON:
// the base of gpu_benchmark.
#pragma once

#include <algorithm>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cuda/core/event.h"
#include "cuda/core/memory.h"

namespace cistern {

// Threads: one.
class Figures {
 public:
  // shrink > 1: sizes are divided by shrink and there are few runs, for a quick functional check.
  Figures(Stream& stream, MemoryPool& pool, size_t shrink)
      : stream_(stream), pool_(pool), shrink_(shrink), runs_(shrink > 1 ? 2 : 20) {}

  // A benchmark size: n divided by shrink, but at least min(n, least).
  size_t Small(size_t n, size_t least = 32) const {
    return std::max(n / shrink_, std::min(n, least));
  }

  // Median milliseconds of call(run) over 20 runs after 3 to warm up; 0 after an error.
  double Time(const std::function<void(size_t run)>& call) {
    constexpr size_t kWarmUp = 3;
    std::vector<Event> begins, ends;
    for (size_t run = 0; run < kWarmUp + runs_; ++run) {
      absl::StatusOr<Event> begin = Event::Create(stream_.device());
      absl::StatusOr<Event> end = Event::Create(stream_.device());
      stream_.Record(begin.status());
      stream_.Record(end.status());
      if (!stream_.status().ok()) return 0;
      begin->Record(stream_);
      call(run);
      end->Record(stream_);
      if (run < kWarmUp) continue;
      begins.push_back(*std::move(begin));
      ends.push_back(*std::move(end));
    }
    if (!stream_.Wait().ok()) return 0;
    std::vector<double> ms;
    for (size_t i = 0; i < begins.size(); ++i) {
      const absl::StatusOr<double> one = ends[i].MillisecondsSince(begins[i]);
      if (one.ok()) ms.push_back(*one);
    }
    std::sort(ms.begin(), ms.end());
    return ms.empty() ? 0 : ms[ms.size() / 2];
  }

  // Times call and records it relative to the nearer roof: copy bandwidth, or the rate of the
  // largest product. bytes, flops: the minimum that call moves and computes. items: if not 0, also
  // reports items per second.
  void Measure(const std::string& name, double bytes, double flops,
               const std::function<void(size_t run)>& call, double items = 0) {
    const double ms = Time(call);
    if (ms <= 0) return;
    const double gb_s = bytes / ms * 1e-6, tflop_s = flops / ms * 1e-9;
    const double share = std::max(copy_gb_s_ > 0 ? gb_s / copy_gb_s_ : 0,
                                  product_tflop_s_ > 0 ? tflop_s / product_tflop_s_ : 0);
    const double millions = items / ms * 1e-3;
    lines_.push_back(absl::StrFormat(
        R"(    {"name": "%s", "ms": %.4f, "gb_s": %.1f, "tflop_s": %.2f, "share_of_roof": %.3f%s})",
        name, ms, gb_s, tflop_s, share,
        items > 0 ? absl::StrFormat(R"(, "million_s": %.1f)", millions) : ""));
    std::fprintf(stderr, "%-52s %9.4f ms %8.1f GB/s %7.2f TFLOP/s  %.2f of its roof\n",
                 name.c_str(), ms, gb_s, tflop_s, share);
  }

  void set_copy_gb_s(double rate) { copy_gb_s_ = rate; }
  // Sets the product rate of an arithmetic; it is the roof of the following measurements.
  void set_product_roof(const char* arithmetic, double tflop_s) {
    product_tflop_s_ = tflop_s;
    product_roofs_.push_back(
        absl::StrFormat("  \"product_%s_tflop_s\": %.2f,\n", arithmetic, tflop_s));
  }

  // The fields of the JSON report, without the outer braces.
  std::string Json() const {
    return absl::StrFormat("  \"copy_gb_s\": %.1f,\n%s  \"figures\": [\n%s\n  ]", copy_gb_s_,
                           absl::StrJoin(product_roofs_, ""), absl::StrJoin(lines_, ",\n"));
  }

  Stream& stream() { return stream_; }

  // Whether the pool has room for `bytes`. Measurements that do not fit are skipped.
  bool Fits(double bytes) const {
    return static_cast<double>(pool_.bytes()) + bytes <
           0.9 * static_cast<double>(pool_.cap_bytes());
  }

  // Allocates device memory. If there is not enough, returns empty memory and records the error in
  // the stream.
  Memory Take(double bytes, MemoryPlace place = MemoryPlace::kDevice) {
    absl::StatusOr<Memory> memory = pool_.Take(place, static_cast<size_t>(bytes), "benchmark");
    stream_.Record(memory.status());
    return memory.ok() ? *std::move(memory) : Memory();
  }

  // Random numbers in [-1, 1): products of zeros run faster than products of other numbers.
  Memory Random(double floats) {
    Memory memory = Take(floats * 4);
    std::vector<float> some(size_t{1} << 20);
    std::mt19937 random(7);
    std::uniform_real_distribution<float> draw(-1, 1);
    for (float& x : some) x = draw(random);
    const size_t bytes = memory.bytes();
    size_t done = std::min(bytes, some.size() * sizeof(float));
    CopyToDevice(some.data(), memory.data(), done, stream_);
    for (; done < bytes; done = std::min(bytes, 2 * done)) {
      CopyOnDevice(memory.data(), static_cast<char*>(memory.data()) + done,
                   std::min(done, bytes - done), stream_);
    }
    return memory;
  }

  template <typename T>
  Memory Upload(const std::vector<T>& values) {
    Memory memory = Take(static_cast<double>(values.size() * sizeof(T)));
    if (memory.bytes() > 0) CopyToDevice(values.data(), memory.data(), memory.bytes(), stream_);
    return memory;
  }

 private:
  Stream& stream_;
  MemoryPool& pool_;
  const size_t shrink_, runs_;
  double copy_gb_s_ = 0, product_tflop_s_ = 0;
  std::vector<std::string> product_roofs_, lines_;
};

}  // namespace cistern
