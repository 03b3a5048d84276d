#include "test/fuzz/fuzz_target.h"

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

namespace cistern {
namespace {

uint64_t NumberOf(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  uint64_t number = 0;
  return text != nullptr && absl::SimpleAtoi(text, &number) ? number : otherwise;
}

// A run that takes longer counts as a hang: the process prints its seed and ends.
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

}  // namespace

void RunCorpus(const FuzzTarget& target) {
  const std::vector<std::string> corpus = CorpusOf(target.name);
  EXPECT_FALSE(corpus.empty());
  for (const std::string& bytes : corpus) target.run(bytes);
}

void RunChangedCorpus(const FuzzTarget& target, uint64_t runs) {
  const std::vector<std::string> corpus = CorpusOf(target.name);
  ASSERT_FALSE(corpus.empty());
  runs = NumberOf("CISTERN_FUZZ_RUNS", runs);
  const uint64_t first = NumberOf("CISTERN_FUZZ_FIRST", 0);
  std::signal(SIGALRM, SayHang);
  for (uint64_t seed = first; seed < first + runs; ++seed) {
    seed_of_run = seed;
    alarm(kHangSeconds);
    std::string bytes = corpus[seed % corpus.size()];
    MutateBytes(seed, &bytes);
    target.run(bytes);
  }
  alarm(0);
}

}  // namespace cistern
