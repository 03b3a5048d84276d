// A library that the CUDA driver loads into any program and that lists what the GPU did:
//
//   CUDA_INJECTION64_PATH=libkernel_times.so CISTERN_KERNEL_TIMES=FILE program...
//
// FILE gets one JSON object when the program ends: how long the GPU was observed, the share of that
// time in which it ran anything ("busy") and in which it ran kernels ("kernels_busy"), and a line
// for each kernel and kind of copy, the longest in total first. With
// CISTERN_KERNEL_TIMELINE=FILE, the last records are also written as lines
// "start_us,us,stream,name". Nodes of CUDA graphs are observed one by one, which slows short
// kernels down a little; for the time of a step, measure without this library.
#include <cupti.h>
#include <cxxabi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Record {
  uint64_t begin, end;  // ns
  uint32_t stream;
  uint32_t name;
  bool is_kernel;
};

struct Times {
  std::mutex mutex;
  std::map<std::string, uint32_t> names;
  std::vector<Record> records;
  std::vector<uint64_t> bytes;  // by name, of copies
};
Times& All() {
  static Times* times = new Times;  // outlives the handlers of exit
  return *times;
}

// A kernel's name without return type, arguments and this project's namespaces.
std::string ShortName(const char* symbol) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  std::string name = status == 0 ? demangled : symbol;
  std::free(demangled);
  for (const char* part : {"cistern::op::", "cistern::", "(anonymous namespace)::", "void "}) {
    for (size_t at; (at = name.find(part)) != std::string::npos;) {
      name.erase(at, std::string(part).size());
    }
  }
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (name[i] == '(' && depth == 0) name.resize(i);
  }
  if (name.size() > 150) name.resize(150);
  for (char& c : name) {
    if (c == '"' || c == '\\' || c == ',') c = ' ';
  }
  return name;
}

void Add(const std::string& name, uint64_t begin, uint64_t end, uint32_t stream, bool is_kernel,
         uint64_t bytes) {
  Times& all = All();
  const auto [at, is_new] = all.names.emplace(name, static_cast<uint32_t>(all.names.size()));
  if (is_new) all.bytes.push_back(0);
  all.bytes[at->second] += bytes;
  all.records.push_back({begin, end, stream, at->second, is_kernel});
}

void CUPTIAPI Request(uint8_t** buffer, size_t* size, size_t* most) {
  *size = size_t{8} << 20;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
  *most = 0;
}

void CUPTIAPI Complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  const std::lock_guard<std::mutex> lock(All().mutex);
  // Never destroyed: exit may have destroyed other statics when the last records arrive.
  static auto& short_names = *new std::map<const char*, std::string>;
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
        std::string& name = short_names[kernel->name];
        if (name.empty()) name = ShortName(kernel->name);
        Add(name, kernel->start, kernel->end, kernel->streamId, true, 0);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto* copy = reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
        const char* kind = copy->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD   ? "to device"
                           : copy->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH ? "to host"
                                                                               : "on device";
        const char* memory = copy->srcKind == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE ||
                                     copy->dstKind == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE
                                 ? " pageable"
                                 : "";
        Add(std::string("copy ") + kind + memory, copy->start, copy->end, copy->streamId, false,
            copy->bytes);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto* set = reinterpret_cast<const CUpti_ActivityMemset4*>(record);
        Add("memset", set->start, set->end, set->streamId, false, set->bytes);
        break;
      }
      default:
        break;
    }
  }
  std::free(buffer);
}

// The length of the union of the records' intervals.
uint64_t Busy(const std::vector<Record>& sorted, bool only_kernels) {
  uint64_t busy = 0, until = 0;
  for (const Record& record : sorted) {
    if (only_kernels && !record.is_kernel) continue;
    if (record.end > until) busy += record.end - std::max(record.begin, until);
    until = std::max(until, record.end);
  }
  return busy;
}

void WriteTimeline(const char* path, const std::vector<Record>& sorted,
                   const std::vector<std::string>& names) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return;
  constexpr size_t kMost = 60000;
  const size_t first = sorted.size() > kMost ? sorted.size() - kMost : 0;
  for (size_t i = first; i < sorted.size(); ++i) {
    const Record& r = sorted[i];
    std::fprintf(file, "%.2f,%.2f,%u,%s\n",
                 static_cast<double>(r.begin - sorted[first].begin) * 1e-3,
                 static_cast<double>(r.end - r.begin) * 1e-3, r.stream, names[r.name].c_str());
  }
  std::fclose(file);
}

void Write() {
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  Times& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const char* path = std::getenv("CISTERN_KERNEL_TIMES");
  if (path == nullptr || all.records.empty()) return;
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return;
  std::vector<Record> sorted = all.records;
  std::sort(sorted.begin(), sorted.end(),
            [](const Record& a, const Record& b) { return a.begin < b.begin; });
  std::vector<std::string> names(all.names.size());
  for (const auto& [name, index] : all.names) names[index] = name;
  struct Sum {
    uint64_t ns = 0, count = 0, least = UINT64_MAX;
    uint32_t name = 0;
  };
  std::vector<Sum> sums(names.size());
  uint64_t end = 0;
  for (const Record& record : sorted) {
    Sum& sum = sums[record.name];
    sum.name = record.name;
    sum.ns += record.end - record.begin;
    sum.least = std::min(sum.least, record.end - record.begin);
    ++sum.count;
    end = std::max(end, record.end);
  }
  std::sort(sums.begin(), sums.end(), [](const Sum& a, const Sum& b) { return a.ns > b.ns; });
  const auto observed = static_cast<double>(end - sorted.front().begin);
  std::fprintf(file, "{\"seconds\": %.4f, \"busy\": %.4f, \"kernels_busy\": %.4f, \"lines\": [",
               observed * 1e-9, static_cast<double>(Busy(sorted, false)) / observed,
               static_cast<double>(Busy(sorted, true)) / observed);
  for (const Sum& sum : sums) {
    const auto ns = static_cast<double>(sum.ns), count = static_cast<double>(sum.count);
    std::fprintf(file,
                 "%s\n  {\"name\": \"%s\", \"count\": %.0f, \"ms\": %.3f, \"us_each\": %.2f, ",
                 &sum == sums.data() ? "" : ",", names[sum.name].c_str(), count, ns * 1e-6,
                 ns / count * 1e-3);
    std::fprintf(file, "\"us_min\": %.2f", static_cast<double>(sum.least) * 1e-3);
    if (all.bytes[sum.name] > 0) {
      std::fprintf(file, ", \"gb_s\": %.2f", static_cast<double>(all.bytes[sum.name]) / ns);
    }
    std::fprintf(file, "}");
  }
  std::fprintf(file, "\n]}\n");
  std::fclose(file);
  if (const char* timeline = std::getenv("CISTERN_KERNEL_TIMELINE")) {
    WriteTimeline(timeline, sorted, names);
  }
}

}  // namespace

// The driver calls this function when the program first uses CUDA.
extern "C" [[gnu::visibility("default")]] int InitializeInjection() {
  if (cuptiActivityRegisterCallbacks(Request, Complete) != CUPTI_SUCCESS) {
    std::fprintf(stderr, "kernel_times: CUPTI refuses to observe this program\n");
    return 0;
  }
  for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                        CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET}) {
    if (cuptiActivityEnable(kind) != CUPTI_SUCCESS) {
      std::fprintf(stderr, "kernel_times: CUPTI cannot observe activity %d\n", kind);
    }
  }
  std::atexit(Write);
  return 1;
}
