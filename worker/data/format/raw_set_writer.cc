// Writes Raw files (format: raw_reader.h), all samples of a set in data.bin.
#include <cmath>
#include <cstring>
#include <limits>

#include "common/base/check.h"
#include "common/io/new_file.h"
#include "worker/data/format/file_list.h"
#include "worker/data/format/key_weights.h"
#include "worker/data/format/sample_set_writer.h"

namespace cistern::data {
namespace {

constexpr const char* kFileName = "data.bin";

class RawSet : public SampleSetWriter {
 public:
  RawSet(FileSystem& files, std::string folder, std::unique_ptr<NewFile> file,
         const DataSetOptions& options)
      : files_(files), folder_(std::move(folder)), file_(std::move(file)), options_(options) {}

  absl::Status Append(const SampleBlock& block) override {
    CISTERN_ASSIGN_OR_RETURN(const std::string bytes, BytesOf(block));
    return file_->Append(bytes);
  }

  absl::Status AppendAll(absl::Span<const SampleBlock> blocks, ThreadPool& pool) override {
    std::vector<absl::StatusOr<std::string>> bytes(blocks.size());
    pool.ParallelFor(blocks.size(), [&](size_t i) { bytes[i] = BytesOf(blocks[i]); });
    for (const absl::StatusOr<std::string>& one : bytes) {
      CISTERN_RETURN_IF_ERROR(one.status());
      CISTERN_RETURN_IF_ERROR(file_->Append(*one));
    }
    return absl::OkStatus();
  }

  absl::Status Close() override {
    CISTERN_RETURN_IF_ERROR(file_->Close());
    return WriteFileList(files_, folder_ + "/file_list.txt", {kFileName});
  }

  std::string source() const override { return kFileName; }

 private:
  absl::StatusOr<std::string> BytesOf(const SampleBlock& block) const {
    CISTERN_CHECK(block.sparse.size() == options_.shape.slot_nums.size());
    const SampleShape& shape = options_.shape;
    std::string bytes;
    for (size_t sample = 0; sample < block.size; ++sample) {
      const float* label = block.label.data() + sample * shape.label_dim;
      const float* dense = block.dense.data() + sample * shape.dense_dim;
      for (uint32_t i = 0; i < shape.label_dim; ++i) {
        CISTERN_RETURN_IF_ERROR(AppendNumber(label[i], "label", &bytes));
      }
      for (uint32_t i = 0; i < shape.dense_dim; ++i) {
        CISTERN_RETURN_IF_ERROR(AppendNumber(dense[i], "dense feature", &bytes));
      }
      for (size_t input = 0; input < block.sparse.size(); ++input) {
        CISTERN_RETURN_IF_ERROR(AppendKeys(block.sparse[input], sample, input, &bytes));
      }
      for (size_t input = 0; input < shape.key_weights.size(); ++input) {
        if (!shape.key_weights[input]) continue;
        CISTERN_RETURN_IF_ERROR(AppendWeights(block.sparse[input], sample, input, &bytes));
      }
    }
    return bytes;
  }

  template <typename T>
  static void AppendBytes(T value, std::string* bytes) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes->append(raw, sizeof(T));
  }

  absl::Status AppendNumber(float x, const char* what, std::string* bytes) const {
    if (options_.float_label_dense && std::isfinite(x)) {
      AppendBytes(x, bytes);
      return absl::OkStatus();
    }
    if (options_.float_label_dense || std::floor(x) != x || std::abs(x) >= 0x1p31f) {
      return absl::DataLossError(
          absl::StrCat("a ", what, " is ", x, ", which a Raw file of ",
                       options_.float_label_dense ? "floats" : "whole numbers", " cannot hold"));
    }
    AppendBytes(static_cast<int32_t>(x), bytes);
    return absl::OkStatus();
  }

  absl::Status AppendKeys(const SparseColumn& column, size_t sample, size_t input,
                          std::string* bytes) const {
    const uint32_t slots = options_.shape.slot_nums[input];
    const uint32_t* offsets = column.offsets.data() + sample * slots;
    for (uint32_t slot = 0; slot < slots; ++slot) {
      if (offsets[slot + 1] - offsets[slot] != 1) {
        return absl::OutOfRangeError(absl::StrCat("slot ", slot, " of input ", input, " has ",
                                                  offsets[slot + 1] - offsets[slot],
                                                  " keys, but a Raw file holds one key per slot"));
      }
      const Key key = column.keys[offsets[slot]];
      if (key >= kReservedKey32) {
        return absl::OutOfRangeError(
            absl::StrCat("key ", key, " does not fit the 32 bits of a Raw file"));
      }
      AppendBytes(static_cast<uint32_t>(key), bytes);
    }
    return absl::OkStatus();
  }

  // Requires that the keys were appended: each slot has one.
  absl::Status AppendWeights(const SparseColumn& column, size_t sample, size_t input,
                             std::string* bytes) const {
    const uint32_t slots = options_.shape.slot_nums[input];
    for (uint32_t slot = 0; slot < slots; ++slot) {
      const uint32_t at = column.offsets[sample * slots + slot];
      const float weight = column.weights.empty() ? 1.0f : column.weights[at];
      if (!std::isfinite(weight)) {
        return absl::DataLossError(
            absl::StrCat("slot ", slot, " of input ", input, ": a weight of a key is not finite"));
      }
      AppendBytes(weight, bytes);
    }
    return absl::OkStatus();
  }

  FileSystem& files_;
  const std::string folder_;
  const std::unique_ptr<NewFile> file_;
  const DataSetOptions options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SampleSetWriter>> CreateRawSetWriter(FileSystem& files,
                                                                    const std::string& folder,
                                                                    const DataSetOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<NewFile> file,
                           NewFile::Create(files, absl::StrCat(folder, "/", kFileName)));
  file->WillBeRead();
  return std::make_unique<RawSet>(files, folder, std::move(file), options);
}

}  // namespace cistern::data
