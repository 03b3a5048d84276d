// Shared by the tests of the ops: a device and a shape as test parameters, arrays on that device,
// and gradients by finite differences.
//
// A reference is a formula in double, written in the test. A gradient is compared with central
// differences of that formula, never with the op's own forward pass.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cuda/core/device.h"
#include "cuda/core/memory.h"
#include "cuda/op/primitive/op.h"

namespace cistern::op {

using Doubles = std::vector<double>;

// A test case of an op. The op defines the meaning of the three sizes: b, k, n or b, slots, dim.
struct OpCase {
  DeviceKind device;
  size_t b, k, n;
};

// The CPU, and a GPU if there is one (gpu_test.cc reports if there is none).
inline std::vector<DeviceKind> TestedDevices() {
  static const bool has_gpu = !QueryGpus().gpus.empty();
  if (!has_gpu) return {DeviceKind::kCpu};
  return {DeviceKind::kCpu, DeviceKind::kCuda};
}

inline std::vector<OpCase> OpCases() {
  std::vector<OpCase> cases;
  for (const DeviceKind device : TestedDevices()) {
    // Sizes around the widths of vectors, blocks and pieces; sizes 0 and 1 in each position; and
    // two shapes that many threads share.
    for (const auto& [b, k, n] : std::vector<std::array<size_t, 3>>{{0, 3, 5},
                                                                    {3, 0, 5},
                                                                    {3, 5, 0},
                                                                    {0, 0, 0},
                                                                    {1, 1, 1},
                                                                    {1, 31, 33},
                                                                    {31, 1, 32},
                                                                    {32, 33, 1},
                                                                    {33, 32, 31},
                                                                    {32, 32, 32},
                                                                    {64, 3, 65},
                                                                    {65, 31, 1},
                                                                    {129, 1, 1},
                                                                    {70, 24, 16},
                                                                    {257, 20, 40},
                                                                    {1030, 9, 33}}) {
      cases.push_back({device, b, k, n});
    }
  }
  return cases;
}

// As OpCases(), of at most 33 samples: for ops whose work grows with the square of a sample's
// length, which the emulator of a GPU would compute for minutes.
inline std::vector<OpCase> OpCasesOfFewSamples() {
  std::vector<OpCase> cases = OpCases();
  for (OpCase& c : cases) c.b = std::min<size_t>(c.b, 33);
  return cases;
}

// One case per device, for tests with their own shapes.
inline std::vector<OpCase> OneCaseADevice() {
  std::vector<OpCase> cases;
  for (const DeviceKind device : TestedDevices()) cases.push_back({device, 1, 1, 1});
  return cases;
}

inline std::string OpCaseName(const testing::TestParamInfo<OpCase>& info) {
  const OpCase& c = info.param;
  return (c.device == DeviceKind::kCpu ? "cpu_" : "cuda_") + std::to_string(c.b) + "_" +
         std::to_string(c.k) + "_" + std::to_string(c.n);
}

// The device of the current test, on which arrays are allocated. Null: the CPU.
inline Stream*& StreamOfTest() {
  static Stream* stream = nullptr;
  return stream;
}

// Memory of the GPU for arrays, and a stream that is replaced after a test leaves an error in it.
inline MemoryPool& GpuPool() {
  static MemoryPool pool(DeviceKind::kCuda, 0, uint64_t{8} << 30);
  return pool;
}
inline Stream& GpuStream() {
  // Never deleted: CUDA's libraries may be unloaded before static destructors run.
  static Stream* stream = nullptr;
  if (stream == nullptr || !stream->status().ok()) {
    absl::StatusOr<Stream> made = Stream::OnGpu(0);
    EXPECT_TRUE(made.ok()) << made.status();
    delete stream;
    stream = new Stream(made.ok() ? *std::move(made) : Stream(DeviceKind::kCuda));
  }
  return *stream;
}

// An array in memory of the test's device.
template <typename T>
class Array {
 public:
  explicit Array(size_t n, T value = T()) : Array(std::vector<T>(n, value)) {}
  template <typename From>
  explicit Array(const std::vector<From>& x) : values_(x.begin(), x.end()) {
    CopyThere();
  }
  Array(const Array& other) : values_(other.Read()) { CopyThere(); }
  Array(Array&&) = default;

  T* data() { return on_gpu_ ? static_cast<T*>(memory_.data()) : values_.data(); }
  const T* data() const { return on_gpu_ ? static_cast<const T*>(memory_.data()) : values_.data(); }
  size_t size() const { return values_.size(); }

  // Waits for the device.
  const std::vector<T>& Read() const {
    if (on_gpu_ && size() > 0) {
      CopyToHost(memory_.data(), values_.data(), size() * sizeof(T), GpuStream());
      const absl::Status status = GpuStream().Wait();
      EXPECT_TRUE(status.ok()) << status;
    }
    return values_;
  }

 private:
  void CopyThere() {
    on_gpu_ = StreamOfTest() != nullptr;
    if (!on_gpu_ || values_.empty()) return;
    absl::StatusOr<Memory> memory =
        GpuPool().Take(MemoryPlace::kDevice, size() * sizeof(T), "array");
    ASSERT_TRUE(memory.ok()) << memory.status();
    memory_ = *std::move(memory);
    CopyToDevice(values_.data(), memory_.data(), size() * sizeof(T), GpuStream());
  }

  mutable std::vector<T> values_;  // on a GPU: the contents at the last Read
  bool on_gpu_ = false;
  Memory memory_;
};
using Floats = Array<float>;

// A test fixture with one device, one shape, and one random sequence.
class OpTest : public testing::TestWithParam<OpCase> {
 protected:
  void SetUp() override {
    if (GetParam().device == DeviceKind::kCuda) StreamOfTest() = &GpuStream();
  }
  void TearDown() override {
    const absl::Status status = stream().Wait();
    EXPECT_TRUE(status.ok()) << status;
    StreamOfTest() = nullptr;
  }

  size_t b() const { return shape_.b; }
  size_t k() const { return shape_.k; }
  size_t n() const { return shape_.n; }
  Stream& stream() { return StreamOfTest() != nullptr ? *StreamOfTest() : cpu_; }

  // `count` numbers in [low, high) that are exactly representable as floats.
  Doubles Random(size_t count, double low = -1, double high = 1) {
    std::uniform_real_distribution<float> draw(static_cast<float>(low), static_cast<float>(high));
    Doubles x(count);
    for (double& v : x) v = draw(random_);
    return x;
  }
  size_t RandomIndex(size_t count) { return random_() % count; }

  static void ExpectNear(const Doubles& expected, const Floats& actual, double tolerance) {
    ASSERT_EQ(expected.size(), actual.size());
    const std::vector<float>& values = actual.Read();
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(expected[i], values[i], tolerance * std::max(1.0, std::abs(expected[i])))
          << "at " << i;
    }
  }

  // Checks gradient = base + d loss / d x at up to 16 positions, or 6 if the loss is slow.
  void ExpectGradient(const std::function<double(const Doubles&)>& loss, Doubles x,
                      const Floats& gradient, double tolerance, double base = 0) {
    constexpr double kStep = 1e-5;
    const size_t places = std::min<size_t>(x.size(), x.size() > 1000 ? 6 : 16);
    ASSERT_EQ(x.size(), gradient.size());
    const std::vector<float>& values = gradient.Read();
    for (size_t place = 0; place < places; ++place) {
      const size_t i = x.size() == places ? place : RandomIndex(x.size());
      const double at = x[i];
      x[i] = at + kStep;
      const double above = loss(x);
      x[i] = at - kStep;
      const double expected = base + (above - loss(x)) / (2 * kStep);
      x[i] = at;
      ASSERT_NEAR(expected, values[i], tolerance * std::max(1.0, std::abs(expected))) << "at " << i;
    }
  }

  static double Dot(const Doubles& a, const Doubles& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  }

 private:
  const OpCase shape_ = GetParam();  // GetParam checks, which formulas notice
  Stream cpu_;
  std::mt19937_64 random_{20240229};
};

// The contents of an array before an op overwrites it, so that skipped elements show.
inline constexpr float kUnset = 1e30f;
// The contents of an input's gradient before an op accumulates into it.
inline constexpr float kBefore = 0.5f;

inline Floats Gradient(size_t n, Write write) {
  return Floats(n, write == Write::kAccumulate ? kBefore : kUnset);
}
inline double Base(Write write) {
  return write == Write::kAccumulate ? kBefore : 0.0;
}

}  // namespace cistern::op
