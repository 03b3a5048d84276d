// The cost of reading training data: the same samples in each format, from the disk and from the
// page cache, compared with the rate at which the machine reads plain bytes.
//
//   reader_benchmark FOLDER [SAMPLES]
//
// FOLDER: on the disk to measure, emptied. SAMPLES: 2000000 by default.
//
// Samples have 13 dense features and 26 one-hot slots, like Criteo's. Prints one JSON object. As
// root, the page cache is dropped before each read that must come from the disk. One thread, except
// for two_threads_mb_s: two threads that read streams of the data from the page cache, medians of
// seven rounds.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/base/thread_pool.h"
#include "test/benchmark/bench_run.h"
#include "worker/data/format/data_streams.h"
#include "worker/data/prepare/generate.h"

namespace cistern {
namespace {

constexpr size_t kSlots = 26, kBatch = 4096, kBuffer = size_t{1} << 20;

// The data files of a data set, without its file lists.
std::vector<std::string> DataFiles(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension();
    if (entry.is_regular_file() && extension != ".txt" && extension != ".json") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Reads every byte without parsing: the maximum rate of the machine.
uint64_t ReadPlain(const std::vector<std::string>& files) {
  std::vector<char> buffer(kBuffer);
  uint64_t bytes = 0;
  for (const std::string& path : files) {
    const int file = open(path.c_str(), O_RDONLY);
    CISTERN_CHECK(file >= 0);
    ssize_t got = 0;
    while ((got = read(file, buffer.data(), buffer.size())) > 0)
      bytes += static_cast<uint64_t>(got);
    close(file);
  }
  return bytes;
}

uint64_t ReadAll(data::SampleReader& reader) {
  data::SampleBlock block;
  uint64_t samples = 0;
  while (true) {
    block.Reset(1);
    const auto got = reader.Read(kBatch, &block);
    Must(got.status());
    if (*got == 0) return samples;
    samples += *got;
  }
}

uint64_t ReadSamples(const data::DataSetOptions& options) {
  auto reader = data::OpenDataSet(options);
  Must(reader.status());
  return ReadAll(**reader);
}

// Reads the streams of the data on the threads of `pool`; returns the seconds.
double ReadStreams(const data::DataStreams& streams, uint64_t expected, ThreadPool& pool) {
  const Clock::time_point start = Clock::now();
  std::atomic<uint64_t> samples = 0;
  pool.ParallelFor(streams.size(), [&](size_t stream) {
    auto reader = streams.Open(0, static_cast<uint32_t>(stream));
    Must(reader.status());
    samples += ReadAll(**reader);
  });
  CISTERN_CHECK(samples == expected);
  return SecondsSince(start);
}

// The medians of one and of two threads, in rounds that take turns. The first round of each is not
// counted: it touches the memory of new threads for the first time.
struct StreamTimes {
  uint32_t streams = 0;
  double one = 0, two = 0;
};
StreamTimes MeasureStreams(const data::DataSetOptions& options, uint64_t samples) {
  constexpr size_t kStreams = 8, kRounds = 7;
  const auto streams = data::DataStreams::Divide(options, kStreams);
  Must(streams.status());
  ThreadPool one(1), two(2);
  std::vector<double> ones, twos;
  for (size_t round = 0; round <= kRounds; ++round) {
    const double first = ReadStreams(*streams, samples, one);
    const double second = ReadStreams(*streams, samples, two);
    if (round == 0) continue;
    ones.push_back(first);
    twos.push_back(second);
  }
  std::sort(ones.begin(), ones.end());
  std::sort(twos.begin(), twos.end());
  return {streams->size(), ones[kRounds / 2], twos[kRounds / 2]};
}

struct Form {
  const char* name;
  data::DataFormat format;
  data::NormCheck check;
};

void Measure(const Form& form, const std::string& folder, uint64_t samples) {
  data::GenerateOptions options;
  options.out = folder + "/" + form.name;
  options.data.format = form.format;
  options.data.check = form.check;
  options.data.wide_keys = form.format == data::DataFormat::kParquet;
  options.data.float_label_dense = true;
  options.data.shape.dense_dim = 13;
  options.data.shape.slot_nums = {kSlots};
  options.data.shape.max_keys = {kSlots};
  options.data.slot_sizes.assign(kSlots, 1000000);
  options.train_samples = samples;
  options.test_samples = 1;
  const auto made = data::Generate(options);
  Must(made.status());
  data::DataSetOptions read = options.data;
  read.source = made->train_source;
  const std::filesystem::path source(made->train_source);
  const std::vector<std::string> files = DataFiles(
      std::filesystem::is_directory(source) ? source.string() : source.parent_path().string());

  const auto seconds = [&](bool cold, const auto& body) {
    if (cold) DropCaches();
    const Clock::time_point start = Clock::now();
    body();
    return SecondsSince(start);
  };
  uint64_t bytes = 0;
  const double disk = seconds(true, [&] { bytes = ReadPlain(files); });
  const double memory = seconds(false, [&] { ReadPlain(files); });
  const double cold = seconds(true, [&] { CISTERN_CHECK(ReadSamples(read) == samples); });
  const double warm = seconds(false, [&] { CISTERN_CHECK(ReadSamples(read) == samples); });
  const auto [streams, one, two] = MeasureStreams(read, samples);
  const double mega = static_cast<double>(bytes) / 1e6, n = static_cast<double>(samples);
  std::printf(",\n  \"%s\": {\"bytes_per_sample\": %.1f,\n", form.name,
              static_cast<double>(bytes) / n);
  std::printf("    \"disk_mb_s\": %.0f, \"cold_mb_s\": %.0f, \"cold_share\": %.2f,\n", mega / disk,
              mega / cold, disk / cold);
  std::printf("    \"page_cache_mb_s\": %.0f, \"warm_mb_s\": %.0f, \"warm_share\": %.2f,\n",
              mega / memory, mega / warm, memory / warm);
  std::printf(
      "    \"streams\": %u, \"one_thread_mb_s\": %.0f, \"two_threads_mb_s\": %.0f, "
      "\"two_to_one\": %.2f,\n",
      streams, mega / one, mega / two, one / two);
  std::printf("    \"cold_samples_s\": %.0f, \"warm_samples_s\": %.0f}", n / cold, n / warm);
  std::filesystem::remove_all(options.out);
}

int Run(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: reader_benchmark FOLDER [SAMPLES]\n");
    return 2;
  }
  const std::string folder = argv[1];
  const uint64_t samples = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 2000000;
  std::filesystem::create_directories(folder);
  const Form forms[] = {{"norm", data::DataFormat::kNorm, data::NormCheck::kNone},
                        {"norm_checked", data::DataFormat::kNorm, data::NormCheck::kSum},
                        {"raw", data::DataFormat::kRaw, data::NormCheck::kNone},
                        {"parquet", data::DataFormat::kParquet, data::NormCheck::kNone}};
  std::printf("{\"samples\": %llu", static_cast<unsigned long long>(samples));
  for (const Form& form : forms) Measure(form, folder, samples);
  std::printf("\n}\n");
  return 0;
}

}  // namespace
}  // namespace cistern

int main(int argc, char** argv) {
  return cistern::Run(argc, argv);
}
