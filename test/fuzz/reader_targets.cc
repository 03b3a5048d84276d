#include "test/fuzz/reader_targets.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <set>

#include "common/base/check.h"
#include "worker/data/feed/payload_reader.h"
#include "worker/data/format/data_set.h"
#include "worker/data/format/file_list.h"
#include "worker/data/format/keyset.h"
#include "worker/data/format/parquet_columns.h"
#include "worker/data/format/parquet_reader.h"

namespace cistern {
namespace {

// A file in memory. All runs reuse it, because creating a file takes longer than reading it.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("fuzz", MFD_CLOEXEC)) { CISTERN_CHECK(fd_ >= 0); }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  // Replaces the contents by `bytes`. Returns the path.
  const std::string& Hold(absl::string_view bytes) {
    CISTERN_CHECK(ftruncate(fd_, static_cast<off_t>(bytes.size())) == 0);
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t written =
          pwrite(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
      CISTERN_CHECK(written > 0);
      done += static_cast<size_t>(written);
    }
    return path_;
  }

 private:
  const int fd_;
  const std::string path_ = absl::StrCat("/proc/self/fd/", fd_);
};

// The shape of every target: one label, two dense features, inputs with 2 slots and 1 slot.
data::DataSetOptions Options(data::DataFormat format) {
  data::DataSetOptions options;
  options.format = format;
  options.shape = {1, 2, {2, 1}, {5, 0}};
  if (!data::HoldsKeyLists(format)) options.slot_sizes = {10, 4, 7};
  return options;
}

// Checks what every reader guarantees about its output.
void CheckBlock(const data::DataSetOptions& options, const data::SampleBlock& block) {
  const data::SampleShape& shape = options.shape;
  CISTERN_CHECK(block.label.size() == block.size * shape.label_dim);
  CISTERN_CHECK(block.dense.size() == block.size * shape.dense_dim);
  for (float x : block.label) CISTERN_CHECK(std::isfinite(x));
  for (float x : block.dense) CISTERN_CHECK(std::isfinite(x));
  Key limit = options.wide_keys ? kReservedKey64 : kReservedKey32;
  if (!data::HoldsKeyLists(options.format)) limit = 10 + 4 + 7;
  for (size_t i = 0; i < block.sparse.size(); ++i) {
    const data::SparseColumn& column = block.sparse[i];
    CISTERN_CHECK(column.offsets.size() == block.size * shape.slot_nums[i] + 1);
    CISTERN_CHECK(column.offsets.front() == 0 && column.offsets.back() == column.keys.size());
    for (size_t k = 1; k < column.offsets.size(); ++k) {
      CISTERN_CHECK(column.offsets[k - 1] <= column.offsets[k]);
    }
    for (Key key : column.keys) CISTERN_CHECK(key < limit);
    const bool weighted = !shape.key_weights.empty() && shape.key_weights[i];
    CISTERN_CHECK(column.weights.size() == (weighted ? column.keys.size() : 0));
    for (float weight : column.weights) CISTERN_CHECK(std::isfinite(weight));
  }
}

void ReadSamples(const data::DataSetOptions& options) {
  const auto reader = data::OpenDataSet(options);
  if (!reader.ok()) return;
  data::SampleBlock block;
  for (size_t got = 1; got > 0;) {
    block.Reset(options.shape.slot_nums.size());
    const absl::StatusOr<size_t> read = (*reader)->Read(3, &block);
    CheckBlock(options, block);
    if (!read.ok()) return;
    CISTERN_CHECK(*read == block.size && *read <= 3);
    got = *read;
  }
}

// The first byte selects one of the four kinds of Norm files, and whether the keys of the first
// input have weights.
void ReadNorm(absl::string_view bytes) {
  if (bytes.empty()) return;
  static MemoryFile file;
  data::DataSetOptions options = Options(data::DataFormat::kNorm);
  options.check = (bytes[0] & 1) != 0 ? data::NormCheck::kSum : data::NormCheck::kNone;
  options.wide_keys = (bytes[0] & 2) != 0;
  if ((bytes[0] & 4) != 0) options.shape.key_weights = {true, false};
  options.source = file.Hold(bytes.substr(1));
  ReadSamples(options);
}

// The first byte selects whether labels and dense features are floats, and whether the keys of the
// first input have weights.
void ReadRaw(absl::string_view bytes) {
  if (bytes.empty()) return;
  static MemoryFile file;
  data::DataSetOptions options = Options(data::DataFormat::kRaw);
  options.float_label_dense = (bytes[0] & 1) != 0;
  if ((bytes[0] & 4) != 0) options.shape.key_weights = {true, false};
  options.source = file.Hold(bytes.substr(1));
  ReadSamples(options);
}

void ReadParquet(absl::string_view bytes) {
  static MemoryFile file;
  data::DataSetOptions options = Options(data::DataFormat::kParquet);
  options.source = file.Hold(bytes);
  ReadSamples(options);
}

// The first byte selects the key width, whether columns have names, and whether the keys of the
// first input have weights. The archive may be compressed. Its samples are read, and passed over.
void ReadTar(absl::string_view bytes) {
  if (bytes.empty()) return;
  static MemoryFile file;
  data::DataSetOptions options = Options(data::DataFormat::kTar);
  options.wide_keys = (bytes[0] & 1) != 0;
  if ((bytes[0] & 2) != 0)
    options.columns = {{"label"}, {"I1", "I2"}, {"C1", "C2", "C3"}, {"I1", "C2"}};
  if ((bytes[0] & 4) != 0) options.shape.key_weights = {true, false};
  options.source = file.Hold(bytes.substr(1));
  ReadSamples(options);
  const auto reader = data::OpenDataSet(options);
  if (!reader.ok()) return;
  data::SampleBlock block;
  block.Reset(options.shape.slot_nums.size());
  const absl::StatusOr<uint64_t> skipped = (*reader)->Skip(1000, &block);
  if (skipped.ok()) CISTERN_CHECK(*skipped <= 1000);
}

// Reads the bytes as the _metadata.json of the file in test/golden/parquet/metadata.
void ReadMetadata(absl::string_view bytes) {
  static const data::ParquetOutline kFile = {
      "part_0.parquet", {"C3", "id", "I2", "label", "C1", "I1", "C2"}, 10};
  const data::SampleShape shape = Options(data::DataFormat::kParquet).shape;
  const auto columns =
      data::ParquetColumnsOfMetadata("_metadata.json", std::string(bytes), kFile, shape);
  if (!columns.ok()) return;
  CISTERN_CHECK(columns->labels.size() == 1 && columns->dense.size() == 2);
  CISTERN_CHECK(columns->slots.size() == 3);
  std::set<int> used;
  for (const auto* list : {&columns->labels, &columns->dense, &columns->slots}) {
    for (int position : *list)
      CISTERN_CHECK(position >= 0 && position < 7 && used.insert(position).second);
  }
}

void ReadList(absl::string_view bytes) {
  static MemoryFile file;
  const auto paths = data::ReadFileList(file.Hold(bytes));
  if (paths.ok()) CISTERN_CHECK(paths->size() <= bytes.size() + 1);
}

// The first byte selects the key width.
void ReadKeyset(absl::string_view bytes) {
  if (bytes.empty()) return;
  static MemoryFile file, data;
  data::KeysetOptions options;
  options.data = Options(data::DataFormat::kRaw);
  options.data.source = data.Hold(std::string(24, '\0'));
  options.wide_keys = (bytes[0] & 1) != 0;
  const auto summary = data::CheckKeyset(options, file.Hold(bytes.substr(1)));
  if (summary.ok()) CISTERN_CHECK(summary->keys == 3 && summary->in_file >= 3);
}

// Rows of test/golden/arrow.
std::unique_ptr<data::PayloadReader> MessageReader() {
  data::Recipe recipe;
  recipe.layout.columns = {"id", "click", "price", "user", "tags", "item", "day"};
  recipe.labels = {{"click", std::nullopt, {}}};
  recipe.dense = {{.column = "price"}};
  recipe.slots = {{.column = "user"},
                  {.column = "tags", .separator = ';'},
                  {.column = "item"},
                  {.column = "day"}};
  return *data::ReadRecipePayload(*data::OwnedEncoder::Open(recipe, ""), {4});
}

// Reads the bytes as a message of a topic: lines, JSON objects or an Arrow stream.
void ReadMessage(absl::string_view bytes) {
  static const std::unique_ptr<data::PayloadReader> reader = MessageReader();
  data::DataSetOptions options;
  options.wide_keys = true;
  options.shape = {1, 1, {4}, {}};
  reader->Begin(bytes, "clicks/0: offset 17");
  constexpr int kMaxRows = 10000;  // small messages can hold many rows
  data::SampleBlock block;
  for (int row = 0; row < kMaxRows && !reader->at_end(); ++row) {
    block.Reset(1);
    const absl::StatusOr<size_t> read = reader->Read(1, &block);
    CheckBlock(options, block);
    if (!read.ok()) {
      CISTERN_CHECK(block.size == 0);
      return;
    }
    CISTERN_CHECK(*read == block.size && *read <= 1);
    if (*read == 0) return;
  }
}

}  // namespace

const std::vector<FuzzTarget>& ReaderTargets() {
  static const std::vector<FuzzTarget> targets = [] {
    std::vector<FuzzTarget> all = {{"norm", ReadNorm},         {"raw", ReadRaw},
                                   {"file_list", ReadList},    {"keyset", ReadKeyset},
                                   {"metadata", ReadMetadata}, {"tar", ReadTar},
                                   {"message", ReadMessage}};
    if (!data::ParquetLibrary().empty()) all.push_back({"parquet", ReadParquet});
    return all;
  }();
  return targets;
}

}  // namespace cistern
