// The kept corpus of every reader, as it is and changed at random: no crash, no hang, no sample
// that a format forbids. CISTERN_FUZZ_RUNS=1000000 changes each reader's corpus so often (default
// 20000, a tenth of it for Parquet), CISTERN_FUZZ_FIRST=3000000 with other seeds than the first so
// many; what is found goes into the corpus.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/numbers.h"
#include "test/fuzz/reader_targets.h"

namespace cistern {
namespace {

uint64_t NumberOf(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  uint64_t number = 0;
  return text != nullptr && absl::SimpleAtoi(text, &number) ? number : otherwise;
}

// A run that takes this long hangs; the process ends with its seed.
constexpr unsigned kHangSeconds = 120;
volatile uint64_t seed_of_run = 0;

void SayHang(int) {
  char text[80];
  const int size = std::snprintf(text, sizeof text, "the run with seed %llu hangs\n",
                                 static_cast<unsigned long long>(seed_of_run));
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, text, static_cast<size_t>(std::max(size, 0)));
  _exit(1);
}

std::vector<std::string> CorpusOf(const std::string& name) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(CISTERN_SOURCE_DIR "/test/fuzz/corpus/" + name)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

class ReaderFuzz : public testing::TestWithParam<ReaderTarget> {};
INSTANTIATE_TEST_SUITE_P(Readers, ReaderFuzz, testing::ValuesIn(ReaderTargets()),
                         [](const auto& target) { return target.param.name; });

TEST_P(ReaderFuzz, TheKeptCorpusIsRead) {
  const std::vector<std::string> corpus = CorpusOf(GetParam().name);
  EXPECT_FALSE(corpus.empty());
  for (const std::string& bytes : corpus) GetParam().read(bytes);
}

TEST_P(ReaderFuzz, ChangedBytesAreReadOrRefused) {
  const std::vector<std::string> corpus = CorpusOf(GetParam().name);
  ASSERT_FALSE(corpus.empty());
  // Parquet files are opened through much more code, and the others' files are small.
  const bool is_slow = std::string(GetParam().name) == "parquet";
  const uint64_t runs = NumberOf("CISTERN_FUZZ_RUNS", is_slow ? 2000 : 20000);
  const uint64_t first = NumberOf("CISTERN_FUZZ_FIRST", 0);
  std::signal(SIGALRM, SayHang);
  for (uint64_t seed = first; seed < first + runs; ++seed) {
    seed_of_run = seed;
    alarm(kHangSeconds);
    std::string bytes = corpus[seed % corpus.size()];
    MutateBytes(seed, &bytes);
    GetParam().read(bytes);
  }
  alarm(0);
}

}  // namespace
}  // namespace cistern
