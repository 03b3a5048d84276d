// Times of a GPU beside the roofs that the same run measures, as JSON: what gpu_benchmark is made
// of.
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
  // shrink > 1: sizes are so many times smaller and there are few runs, to see that all of it
  // works.
  Figures(Stream& stream, MemoryPool& pool, size_t shrink)
      : stream_(stream), pool_(pool), shrink_(shrink), runs_(shrink > 1 ? 2 : 20) {}

  // A size of the benchmark, at least `least` where it is shrunk.
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

  // Times call and notes it beside the roof that is nearer: what the copy moves, or the largest
  // product's rate. bytes, flops: what it must move and do. items: what is counted a second, if
  // anything is.
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
  // Of products in an arithmetic; the roof of what is measured from now on.
  void set_product_roof(const char* arithmetic, double tflop_s) {
    product_tflop_s_ = tflop_s;
    product_roofs_.push_back(
        absl::StrFormat("  \"product_%s_tflop_s\": %.2f,\n", arithmetic, tflop_s));
  }

  // What stands between the braces of the report.
  std::string Json() const {
    return absl::StrFormat("  \"copy_gb_s\": %.1f,\n%s  \"figures\": [\n%s\n  ]", copy_gb_s_,
                           absl::StrJoin(product_roofs_, ""), absl::StrJoin(lines_, ",\n"));
  }

  Stream& stream() { return stream_; }

  // Whether there is so much memory left: what does not fit is left out, and the others go on.
  bool Fits(double bytes) const {
    return static_cast<double>(pool_.bytes()) + bytes <
           0.9 * static_cast<double>(pool_.cap_bytes());
  }

  // Memory of the device; empty and an error in the stream if there is not so much.
  Memory Take(double bytes, MemoryPlace place = MemoryPlace::kDevice) {
    absl::StatusOr<Memory> memory = pool_.Take(place, static_cast<size_t>(bytes), "benchmark");
    stream_.Record(memory.status());
    return memory.ok() ? *std::move(memory) : Memory();
  }

  // Random numbers in [-1, 1): a product of zeros is faster than one of numbers.
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
