#include "worker/group/tcp_communicator.h"

#include <gmock/gmock.h>

#include <cmath>
#include <csignal>
#include <random>

#include "common/base/half.h"
#include "cuda/core/device.h"
#include "cuda/core/memory.h"
#include "test/worker/group/processes.h"

namespace cistern::group {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr milliseconds kPeerLimit{60000};

// The numbers of rank r; integers for integer types.
std::vector<double> Numbers(int rank, size_t count) {
  std::mt19937_64 random(static_cast<uint64_t>(rank) + 17);
  std::uniform_int_distribution<int> draw(-4000000, 4000000);
  std::vector<double> numbers(count);
  for (double& x : numbers) x = draw(random);
  return numbers;
}

std::vector<char> Encode(const std::vector<double>& numbers, ElementType type) {
  std::vector<char> bytes(numbers.size() * BytesOf(type));
  for (size_t i = 0; i < numbers.size(); ++i) {
    char* at = bytes.data() + i * BytesOf(type);
    const auto put = [at](auto x) { std::memcpy(at, &x, sizeof(x)); };
    if (type == ElementType::kFloat) put(static_cast<float>(numbers[i] / 1024));
    if (type == ElementType::kHalf) put(FloatToHalf(static_cast<float>(numbers[i] / 1048576)));
    if (type == ElementType::kBfloat16) put(FloatToBfloat16(static_cast<float>(numbers[i])));
    if (type == ElementType::kDouble) put(numbers[i] / 3);
    if (type == ElementType::kInt64) put(static_cast<int64_t>(numbers[i]));
  }
  return bytes;
}

double Decode(const char* at, ElementType type) {
  const auto get = [at](auto x) {
    std::memcpy(&x, at, sizeof(x));
    return x;
  };
  if (type == ElementType::kFloat) return double{get(0.0f)};
  if (type == ElementType::kHalf) return double{HalfToFloat(get(HalfBits{0}))};
  if (type == ElementType::kBfloat16) return double{Bfloat16ToFloat(get(HalfBits{0}))};
  if (type == ElementType::kDouble) return get(0.0);
  return static_cast<double>(get(int64_t{0}));
}

// The largest error of a sum that is rounded once.
double Tolerance(double sum, ElementType type) {
  const double share = type == ElementType::kFloat      ? 0x1p-24
                       : type == ElementType::kHalf     ? 0x1p-11
                       : type == ElementType::kBfloat16 ? 0x1p-8
                       : type == ElementType::kDouble   ? 0x1p-50
                                                        : 0;
  return std::abs(sum) * share * 1.01 + share * 1e-3;
}

class GroupTest : public testing::TestWithParam<int> {
 protected:
  int size() const { return GetParam(); }
};

TEST_P(GroupTest, SumsMatchADoubleReferenceAndAreIdenticalOnAllRanks) {
  for (const ElementType type : {ElementType::kFloat, ElementType::kHalf, ElementType::kBfloat16,
                                 ElementType::kDouble, ElementType::kInt64}) {
    const std::vector<size_t> counts = {0, 1, 3, 1000, 100003};
    size_t all = 0;
    for (const size_t count : counts) all += count;
    const size_t bytes = all * BytesOf(type);
    const Shared<char> sums(2 * static_cast<size_t>(size()) * bytes);
    for (int run = 0; run < 2; ++run) {
      ExpectAllWell(RunGroup(size(), kPeerLimit, [&](GroupOptions group) -> absl::Status {
        CISTERN_ASSIGN_OR_RETURN(auto peers, ConnectOverTcp(std::move(group)));
        Stream stream;
        char* at = sums.data() + static_cast<size_t>(run * size() + peers->rank()) * bytes;
        for (const size_t count : counts) {
          const std::vector<char> own = Encode(Numbers(peers->rank(), count), type);
          std::copy(own.begin(), own.end(), at);
          CISTERN_RETURN_IF_ERROR(peers->AllReduce(at, count, type, stream));
          at += own.size();
        }
        return absl::OkStatus();
      }));
    }
    for (int copy = 1; copy < 2 * size(); ++copy) {
      ASSERT_EQ(std::memcmp(sums.data(), sums.data() + static_cast<size_t>(copy) * bytes, bytes), 0)
          << "copy " << copy;
    }
    const char* at = sums.data();
    for (const size_t count : counts) {
      std::vector<std::vector<char>> parts;
      for (int r = 0; r < size(); ++r) parts.push_back(Encode(Numbers(r, count), type));
      for (size_t i = 0; i < count; ++i, at += BytesOf(type)) {
        double expected = 0;
        for (const auto& part : parts) expected += Decode(part.data() + i * BytesOf(type), type);
        ASSERT_NEAR(Decode(at, type), expected, Tolerance(expected, type))
            << count << " at " << i << " type " << static_cast<int>(type);
      }
    }
  }
}

// Rank r sends (r + 1) * (to + 2) % 5 numbers to rank `to`.
TEST_P(GroupTest, AllToAllDeliversEachRanksPart) {
  const auto count = [](size_t from, size_t to) { return (from + 1) * (to + 2) % 5 * 10000; };
  ExpectAllWell(RunGroup(size(), kPeerLimit, [&](GroupOptions group) -> absl::Status {
    CISTERN_ASSIGN_OR_RETURN(auto peers, ConnectOverTcp(std::move(group)));
    const auto own = static_cast<size_t>(peers->rank()), ranks = static_cast<size_t>(peers->size());
    Stream stream;
    std::vector<uint32_t> sent, expected;
    std::vector<size_t> sent_bytes, received_bytes;
    for (size_t r = 0; r < ranks; ++r) {
      for (size_t i = 0; i < count(own, r); ++i) {
        sent.push_back(static_cast<uint32_t>(own * 1000000 + r * 100000 + i));
      }
      for (size_t i = 0; i < count(r, own); ++i) {
        expected.push_back(static_cast<uint32_t>(r * 1000000 + own * 100000 + i));
      }
      sent_bytes.push_back(count(own, r) * sizeof(uint32_t));
      received_bytes.push_back(count(r, own) * sizeof(uint32_t));
    }
    std::vector<uint32_t> received(expected.size());
    CISTERN_RETURN_IF_ERROR(
        peers->AllToAll(sent.data(), sent_bytes, received.data(), received_bytes, stream));
    return received == expected ? absl::OkStatus() : absl::InternalError("other numbers");
  }));
}

TEST_P(GroupTest, BroadcastDeliversTheRootsBytes) {
  ExpectAllWell(RunGroup(size(), kPeerLimit, [&](GroupOptions group) -> absl::Status {
    CISTERN_ASSIGN_OR_RETURN(auto peers, ConnectOverTcp(std::move(group)));
    Stream stream;
    for (int root = 0; root < peers->size(); ++root) {
      for (const size_t bytes : {size_t{0}, size_t{1}, size_t{300001}}) {
        const char letter = static_cast<char>('a' + root);
        const std::vector<char> expected(bytes, letter);
        std::vector<char> data(bytes, peers->rank() == root ? letter : '?');
        CISTERN_RETURN_IF_ERROR(peers->Broadcast(data.data(), bytes, root, stream));
        if (data != expected) return absl::InternalError("other bytes");
      }
    }
    return absl::OkStatus();
  }));
}

TEST_P(GroupTest, NoRankLeavesABarrierBeforeAllHaveEnteredIt) {
  const Shared<int> came(static_cast<size_t>(size()));
  ExpectAllWell(RunGroup(size(), kPeerLimit, [&](GroupOptions group) -> absl::Status {
    CISTERN_ASSIGN_OR_RETURN(auto peers, ConnectOverTcp(std::move(group)));
    Stream stream;
    for (int round = 1; round <= 100; ++round) {
      __atomic_store_n(&came[static_cast<size_t>(peers->rank())], round, __ATOMIC_SEQ_CST);
      CISTERN_RETURN_IF_ERROR(peers->Barrier(stream));
      for (int r = 0; r < peers->size(); ++r) {
        if (__atomic_load_n(&came[static_cast<size_t>(r)], __ATOMIC_SEQ_CST) < round) {
          return absl::InternalError(absl::StrCat("rank ", r, " is not in round ", round));
        }
      }
    }
    return absl::OkStatus();
  }));
}

INSTANTIATE_TEST_SUITE_P(Processes, GroupTest, testing::Values(1, 2, 4));

TEST(Communicator, AKilledRankIsNamed) {
  const std::vector<Ending> endings =
      RunGroup(4, kPeerLimit, [](GroupOptions group) -> absl::Status {
        CISTERN_ASSIGN_OR_RETURN(auto peers, ConnectOverTcp(std::move(group)));
        Stream stream;
        std::vector<float> data(1000000, 1.0f);
        CISTERN_RETURN_IF_ERROR(peers->Barrier(stream));
        if (peers->rank() == 2) raise(SIGKILL);
        const absl::Status status =
            peers->AllReduce(data.data(), data.size(), ElementType::kFloat, stream);
        return peers->Barrier(stream) == status ? status
                                                : absl::InternalError("a later call differs");
      });
  EXPECT_EQ(endings[2].signal, SIGKILL);
  for (const size_t r : {0, 1, 3}) {
    EXPECT_EQ(endings[r].status(), absl::StatusCode::kUnavailable) << r;
    EXPECT_THAT(endings[r].text(), HasSubstr("worker 2 (127.0.0.1)")) << r;
    EXPECT_THAT(endings[r].text(), HasSubstr("AllReduce")) << r;
  }
}

TEST(Communicator, AHangingRankIsNamedAfterTheDeadline) {
  const std::vector<Ending> endings = RunGroup(
      3, milliseconds(3000),
      [](GroupOptions group) -> absl::Status {
        CISTERN_ASSIGN_OR_RETURN(auto peers, ConnectOverTcp(std::move(group)));
        Stream stream;
        CISTERN_RETURN_IF_ERROR(peers->Barrier(stream));
        if (peers->rank() == 1) raise(SIGSTOP);
        std::vector<double> data(10, 1);
        return peers->AllReduce(data.data(), data.size(), ElementType::kDouble, stream);
      },
      -1, [](int rank) { return rank == 1; });
  for (const size_t r : {0, 2}) {
    EXPECT_EQ(endings[r].status(), absl::StatusCode::kDeadlineExceeded) << endings[r].text();
    EXPECT_THAT(endings[r].text(), HasSubstr("AllReduce (call 2): after 3000 ms worker 1")) << r;
  }
}

TEST(Communicator, UnequalSizesAndCallsAreErrors) {
  for (const bool other_call : {false, true}) {
    const std::vector<Ending> endings =
        RunGroup(2, kPeerLimit, [&](GroupOptions group) -> absl::Status {
          CISTERN_ASSIGN_OR_RETURN(auto peers, ConnectOverTcp(std::move(group)));
          Stream stream;
          std::vector<float> data(12, 1);
          if (other_call && peers->rank() == 1) {
            return peers->Broadcast(data.data(), 40, 0, stream);
          }
          const size_t count = peers->rank() == 1 ? 12 : 10;
          return peers->AllReduce(data.data(), count, ElementType::kFloat, stream);
        });
    for (const Ending& ending : endings) {
      EXPECT_EQ(ending.status(), absl::StatusCode::kFailedPrecondition) << ending.text();
    }
    EXPECT_THAT(endings[0].text(), HasSubstr(other_call ? "worker 1 (127.0.0.1) is in Broadcast"
                                                        : "AllReduce (call 1) of 12 elements"));
    EXPECT_THAT(endings[0].text(), HasSubstr("worker 0, is in AllReduce (call 1) of 10 elements"));
  }
}

TEST(Communicator, PartsOfUnexpectedSizesAreAnError) {
  const std::vector<Ending> endings =
      RunGroup(2, kPeerLimit, [&](GroupOptions group) -> absl::Status {
        CISTERN_ASSIGN_OR_RETURN(auto peers, ConnectOverTcp(std::move(group)));
        Stream stream;
        std::vector<char> sent(16), received(16);
        return peers->AllToAll(
            sent.data(), {{0, 0}}, received.data(),
            peers->rank() == 0 ? std::vector<size_t>{0, 8} : std::vector<size_t>{0, 0}, stream);
      });
  EXPECT_EQ(endings[0].status(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(endings[0].text(), HasSubstr("sends 0 bytes"));
  EXPECT_THAT(endings[0].text(), HasSubstr("expects 8 bytes"));
}

TEST(Communicator, MissingRanksAreNamed) {
  const std::vector<Ending> endings = RunGroup(
      4, milliseconds(500),
      [](GroupOptions group) -> absl::Status { return ConnectOverTcp(std::move(group)).status(); },
      2);
  EXPECT_EQ(endings[0].status(), absl::StatusCode::kDeadlineExceeded);
  for (const Ending& ending : endings) {
    EXPECT_FALSE(ending.ok());
    EXPECT_THAT(ending.text(), HasSubstr("worker"));
  }
  EXPECT_THAT(endings[0].text(), HasSubstr("worker 2, 3 did not join"));
}

TEST(Communicator, GroupsThatDisagreeAreRefused) {
  const std::vector<Ending> sizes =
      RunGroup(2, milliseconds(10000), [](GroupOptions group) -> absl::Status {
        if (group.rank == 1) group.size = 3;
        return ConnectOverTcp(std::move(group)).status();
      });
  for (const Ending& ending : sizes) {
    EXPECT_EQ(ending.status(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(ending.text(),
                HasSubstr("worker 1 was started in a group of 3 workers, worker 0 in a group of "
                          "2"));
  }
  const std::vector<Ending> runs =
      RunGroup(2, milliseconds(1000), [](GroupOptions group) -> absl::Status {
        if (group.rank == 1) ++group.secret.value;
        return ConnectOverTcp(std::move(group)).status();
      });
  EXPECT_EQ(runs[0].status(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(runs[1].status(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(runs[1].text(), HasSubstr("without an answer"));
  EXPECT_THAT(runs[1].text(), HasSubstr("belongs to another run"));
}

TEST(Communicator, AnImpossibleGroupIsRefused) {
  const auto status_of = [](int rank, int size, const char* address) {
    GroupOptions group;
    group.rank = rank;
    group.size = size;
    group.address = address;
    group.secret.value = 1;
    return ConnectOverTcp(std::move(group)).status();
  };
  EXPECT_EQ(status_of(2, 2, "a:1").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status_of(-1, 2, "a:1").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status_of(1, 2, "nowhere").message()),
              HasSubstr("'nowhere' has no port"));
  EXPECT_EQ(status_of(0, 1 << 30, "a:1").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(status_of(0, 1, "").ok());
  GroupOptions open_to_all;
  open_to_all.size = 2;
  EXPECT_THAT(ConnectOverTcp(std::move(open_to_all)).status().message(),
              HasSubstr("without a secret"));
}

TEST(Communicator, ACpuCommunicatorRefusesAGpuStream) {
  absl::StatusOr<std::unique_ptr<Communicator>> alone = ConnectOverTcp(GroupOptions());
  ASSERT_TRUE(alone.ok());
  Stream stream(DeviceKind::kCuda);
  float x = 1;
  EXPECT_EQ((*alone)->AllReduce(&x, 1, ElementType::kFloat, stream).code(),
            absl::StatusCode::kInvalidArgument);
}

absl::StatusOr<std::unique_ptr<Communicator>> OnGpuAlone(Stream& stream) {
  CISTERN_ASSIGN_OR_RETURN(auto peers, ConnectOverTcp(GroupOptions()));
  return Communicator::OnGpu(std::move(peers), std::chrono::seconds(60), stream);
}

// A group of one rank on a GPU: loads the library, joins, and sums.
TEST(GpuCommunicator, ASumOverOneRankIsItsInput) {
  if (QueryGpus().gpus.empty()) GTEST_SKIP() << "no GPU: " << QueryGpus().reason;
  absl::StatusOr<Stream> stream = Stream::OnGpu(0);
  ASSERT_TRUE(stream.ok()) << stream.status();
  absl::StatusOr<std::unique_ptr<Communicator>> alone = OnGpuAlone(*stream);
  ASSERT_TRUE(alone.ok()) << alone.status();
  MemoryPool pool(DeviceKind::kCuda, 0, 1 << 20);
  absl::StatusOr<Memory> memory = pool.Take(MemoryPlace::kDevice, 4 * sizeof(float), "test");
  ASSERT_TRUE(memory.ok()) << memory.status();
  const std::vector<float> own = {1, 2, 3, 4};
  std::vector<float> summed(4);
  CopyToDevice(own.data(), memory->data(), 4 * sizeof(float), *stream);
  EXPECT_TRUE((*alone)->AllReduce(memory->data(), 4, ElementType::kFloat, *stream).ok());
  EXPECT_TRUE((*alone)->Broadcast(memory->data(), 16, 0, *stream).ok());
  EXPECT_TRUE((*alone)->Barrier(*stream).ok());
  CopyToHost(memory->data(), summed.data(), 4 * sizeof(float), *stream);
  EXPECT_TRUE(stream->Wait().ok());
  EXPECT_EQ(summed, own);
}

TEST(GpuCommunicator, AnErrorExplainsAMissingGpu) {
  Stream stream(DeviceKind::kCuda);
  EXPECT_FALSE(OnGpuAlone(stream).ok());
}

}  // namespace
}  // namespace cistern::group
