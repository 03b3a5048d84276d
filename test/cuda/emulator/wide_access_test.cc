// The emulator stops at what a GPU faults at: a load or store of several elements at an address
// that is not a multiple of its size.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "cuda/op/primitive/pack.cuh"
#include "cuda/op/primitive/quad.cuh"

namespace cistern::op {
namespace {

constexpr char kMisaligned[] = "misaligned address.*which requires (8|16) byte alignment";

// One access to `data`, which is aligned if `data` is.
struct Access {
  const char* name;
  std::function<void(float* data)> run;
};

std::vector<Access> Accesses() {
  const auto halves = [](float* data) { return reinterpret_cast<Half*>(data); };
  return {
      {"load of float4", [](float* data) { data[8] = LoadQuad(data).x; }},
      {"store of float4", [](float* data) { StoreQuad(data, make_float4(1, 2, 3, 4)); }},
      {"load of 4 halves", [=](float* data) { data[8] = LoadQuad(halves(data)).x; }},
      {"store of 4 halves", [=](float* data) { StoreQuad(halves(data), make_float4(1, 2, 3, 4)); }},
      {"load of 8 halves", [=](float* data) { data[8] = Pack<Half, 8>::Load(halves(data))[0]; }},
      {"store of 8 halves", [=](float* data) { Pack<Half, 8>{}.Store(halves(data)); }},
  };
}

TEST(EmulatedGpu, StopsAtAMisalignedWideAccess) {
  alignas(16) float data[16] = {};
  for (const Access& access : Accesses()) {
    SCOPED_TRACE(access.name);
    access.run(data);
    EXPECT_DEATH(access.run(data + 1), kMisaligned);
  }
}

}  // namespace
}  // namespace cistern::op
