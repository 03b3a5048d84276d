// Each allocation of a commit, a save and a load fails in turn. The call reports it, committed
// state is intact, and the same step succeeds when repeated.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <new>
#include <utility>

#include "common/saved_model/model_part_json.h"
#include "server/checkpoint/manifest.h"
#include "test/support/memory_file_system.h"
#include "test/worker/client/embedded_fleet.h"
#include "test/worker/client/restartable_fleet.h"

namespace {

// The number of allocations until one fails; negative: none fails.
std::atomic<int64_t> left{-1};
std::atomic<int64_t> counted{0};
// No allocation fails in the client, nor in the JSON libraries, which do not survive it.
thread_local bool spared = false;

void* Allocate(size_t bytes, size_t alignment) {
  if (!spared) ++counted;
  if (spared) return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (left.load(std::memory_order_relaxed) >= 0 && left.fetch_sub(1) == 0) throw std::bad_alloc();
  void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) {
  return Allocate(bytes, alignof(std::max_align_t));
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

// The linker redirects calls of these functions here (--wrap, see CMakeLists.txt). The JSON
// libraries behind them end the process when memory runs out: nlohmann's because its values
// allocate in destructors, protobuf's because it is not exception-safe. Their callers reserve the
// memory first (common/base/json_memory.h), and that allocation does fail here.
namespace cistern::server {
#define CISTERN_SPARED(name, symbol, result, argument) \
  result Real##name(argument) asm("__real_" symbol);   \
  result Spared##name(argument) asm("__wrap_" symbol); \
  result Spared##name(argument in) {                   \
    const bool before = std::exchange(spared, true);   \
    result out = Real##name(in);                       \
    spared = before;                                   \
    return out;                                        \
  }
CISTERN_SPARED(FormatPart, "_ZN7cistern10FormatPartB5cxx11ERKNS_9ModelPartE", std::string,
               const ModelPart&)
CISTERN_SPARED(ParsePart, "_ZN7cistern9ParsePartEN4absl7debian311string_viewE",
               absl::StatusOr<ModelPart>, absl::string_view)
CISTERN_SPARED(ParseManifest, "_ZN7cistern6server13ParseManifestEN4absl7debian311string_viewE",
               absl::StatusOr<ParsedManifest>, absl::string_view)
CISTERN_SPARED(FormatManifest, "_ZN7cistern6server14FormatManifestB5cxx11ERKNS_2v18ManifestE",
               std::string, const v1::Manifest&)
#undef CISTERN_SPARED
}  // namespace cistern::server

namespace cistern::server {
namespace {

// One durable server on a disk in memory, with two committed passes and a saved model.
class SmallCluster {
 public:
  SmallCluster() {
    ServerOptions options;
    options.data_dir = "/cluster";
    options.shard_num = 2;
    options.files = &disk_;
    fleet_ = std::make_unique<RestartableFleet>(1, options);
    // This thread is the client's, except during its calls to the control plane; all others are the
    // server's.
    spared = true;
    fleet_->address(0).before = [](const char* method) {
      spared = absl::string_view(method) == "Frame";
      return absl::OkStatus();
    };
    fleet_->address(0).after = [](const char*) {
      spared = true;
      return absl::OkStatus();
    };
    Join();
    EXPECT_EQ(Round(), absl::OkStatus());
    EXPECT_EQ(Round(), absl::OkStatus());
    EXPECT_EQ(Save("two"), absl::OkStatus());
  }
  ParameterClient& client() { return *client_; }

  void Join() {
    ClientOptions options;
    options.retry_limit = absl::ZeroDuration();
    client_ = Connected(fleet_->Links(), options);
    ASSERT_NE(client_, nullptr);
    ASSERT_EQ(client_->CreateTables(TestSchema()), absl::OkStatus());
    ASSERT_EQ(client_->ClaimTerm(), absl::OkStatus());
  }
  absl::Status Round() {
    const PassId pass = client_->committed_pass() + 1;
    CISTERN_RETURN_IF_ERROR(client_->BeginPass());
    const std::vector<Key> keys = {1, 2, 3, 4, 5 + pass};
    std::vector<float> values = ValuesOf(keys, client_->layout(kDeep).full_floats());
    for (float& value : values) value += static_cast<float>(pass);
    const std::vector<uint8_t> has_embedx(keys.size(), 1);
    CISTERN_RETURN_IF_ERROR(client_->Push(kDeep, keys, values.data(), has_embedx.data()));
    const std::vector<float> dense(3000, static_cast<float>(pass));
    CISTERN_RETURN_IF_ERROR(client_->PushDense(kMlp, dense.data()));
    return client_->CommitPass();
  }
  absl::Status Save(const std::string& name) {
    v1::SaveRequest request;
    *request.mutable_identity() = client_->identity();
    request.set_name(name);
    v1::SaveReply reply;
    return fleet_->address(0).Save(request, &reply);
  }
  absl::Status Load() {
    v1::LoadRequest request;
    request.set_name("two");
    v1::LoadReply reply;
    CISTERN_RETURN_IF_ERROR(client_->Clear(0));
    return client_->Load(request, &reply);
  }

 private:
  MemoryFileSystem disk_;
  std::unique_ptr<RestartableFleet> fleet_;
  std::unique_ptr<ParameterClient> client_;
};

// Counts the allocations of `step`, then runs it repeatedly with one of them failing.
// passes: how many passes `step` commits.
void FailAllocationsOf(const std::string& name, PassId passes,
                       const std::function<absl::Status(SmallCluster&)>& step) {
  std::vector<std::vector<uint64_t>> digests;  // after pass 2 and 3
  int64_t allocations = 0;
  {
    SmallCluster cluster;
    digests.push_back(DigestsOf(cluster.client()));
    counted = 0;
    ASSERT_EQ(step(cluster), absl::OkStatus());
    allocations = counted;
    while (cluster.client().committed_pass() < 3) ASSERT_EQ(cluster.Round(), absl::OkStatus());
    digests.push_back(DigestsOf(cluster.client()));
  }
  uint64_t failed = 0;
  for (int64_t at = 0; at < allocations; ++at) {
    SmallCluster cluster;
    left = at;
    const absl::Status status = step(cluster);
    left = -1;
    spared = true;
    failed += !status.ok();
    ASSERT_NO_FATAL_FAILURE(cluster.Join()) << name << ", allocation " << at;
    const PassId pass = cluster.client().committed_pass();
    ASSERT_TRUE(pass == 2 || pass == 2 + passes) << name << ", allocation " << at;
    ASSERT_EQ(DigestsOf(cluster.client()), digests[pass - 2]) << name << ", allocation " << at;
    ASSERT_EQ(step(cluster), absl::OkStatus()) << name << ", allocation " << at;
  }
  EXPECT_GT(failed, 20u);
  std::cout << name << ": " << allocations << " allocations, " << failed << " failed\n";
}

TEST(FailingMemory, ACommit) {
  FailAllocationsOf("commit", 1, [](SmallCluster& cluster) { return cluster.Round(); });
}

TEST(FailingMemory, ASave) {
  int count = 0;
  FailAllocationsOf("save", 0, [&count](SmallCluster& cluster) {
    return cluster.Save(absl::StrCat("save-", ++count));
  });
}

TEST(FailingMemory, ALoad) {
  FailAllocationsOf("load", 0, [](SmallCluster& cluster) { return cluster.Load(); });
}

}  // namespace
}  // namespace cistern::server
