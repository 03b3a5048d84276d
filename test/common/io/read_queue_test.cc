#include "common/io/read_queue.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <random>
#include <thread>

#include "common/base/aligned_buffer.h"
#include "common/io/file_system.h"
#include "test/support/temp_folder.h"

namespace cistern {
namespace {

constexpr size_t kPage = AlignedBuffer::kAlignment;

// A file of pages that begin with their number, and half a page.
std::string WritePages(const TempFolder& folder, uint64_t pages) {
  const std::string path = folder / "pages";
  LocalFileSystem files;
  auto file = files.Create(path).value();
  std::string page(kPage, 'x');
  for (uint64_t i = 0; i <= pages; ++i) {
    std::memcpy(page.data(), &i, sizeof(i));
    EXPECT_TRUE(file->Append(i < pages ? page : page.substr(0, kPage / 2)).ok());
  }
  EXPECT_TRUE(file->Sync().ok() && file->Close().ok());
  return path;
}

// Reads random pages, and the last half one, and checks their numbers.
testing::AssertionResult ReadsRightPages(const ReadableFile& file, uint64_t pages, size_t count,
                                         uint64_t seed) {
  std::mt19937_64 random(seed);
  AlignedBuffer buffer(count * kPage);
  std::vector<ReadRequest> requests;
  std::vector<uint64_t> numbers;
  for (size_t i = 0; i < count; ++i) {
    numbers.push_back(i == 0 ? pages : random() % pages);
    requests.push_back({numbers[i] * kPage, kPage, buffer.data() + i * kPage});
  }
  const absl::Status read = file.ReadMany(requests);
  if (!read.ok()) return testing::AssertionFailure() << read;
  for (size_t i = 0; i < count; ++i) {
    uint64_t found = 0;
    std::memcpy(&found, requests[i].out, sizeof(found));
    if (found != numbers[i]) {
      return testing::AssertionFailure() << "page " << numbers[i] << " reads as " << found;
    }
  }
  return testing::AssertionSuccess();
}

TEST(ReadQueue, ReadsEveryPieceFromSeveralThreads) {
  TempFolder folder;
  const uint64_t pages = 2000;
  LocalFileSystem files;
  const auto file = files.Open(WritePages(folder, pages)).value();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (const size_t count : {1, 2, 255, 256, 257, 3000}) {
        EXPECT_TRUE(ReadsRightPages(*file, pages, count, t)) << count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ReadQueue, APieceAfterTheEndOfATruncatedFileIsAnError) {
  TempFolder folder;
  const std::string path = WritePages(folder, 100);
  LocalFileSystem files;
  const auto file = files.Open(path).value();
  ASSERT_EQ(truncate(path.c_str(), 50 * kPage), 0);
  AlignedBuffer buffer(2 * kPage);
  const ReadRequest requests[] = {{10 * kPage, kPage, buffer.data()},
                                  {80 * kPage, kPage, buffer.data() + kPage}};
  EXPECT_EQ(file->ReadMany(requests).code(), absl::StatusCode::kDataLoss);
}

// As containers do: io_uring_setup fails with EPERM from now on, in this process.
bool RefuseRings() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {sizeof(program) / sizeof(program[0]), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(ReadQueue, UsesThreadsWhereIoUringIsRefused) {
  TempFolder folder;
  const std::string path = WritePages(folder, 2000);
  const pid_t child = fork();
  if (child == 0) {
    if (!RefuseRings()) _exit(2);
    LocalFileSystem files;
    const auto file = files.Open(path).value();
    _exit(ReadsRightPages(*file, 2000, 3000, 1) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace cistern
