#include "worker/data/format/norm_writer.h"

#include <cmath>
#include <cstring>

#include "common/base/check.h"
#include "worker/data/format/key_weights.h"

namespace cistern::data {
namespace {

template <typename T>
void AppendBytes(const T& value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

NormEncoder::NormEncoder(const NormWriterOptions& options) : options_(options) {
  options_.shape.max_keys.resize(options_.shape.slot_nums.size(), 0);
}

size_t NormEncoder::BeginRecord(std::string* bytes) const {
  if (options_.check == NormCheck::kSum) bytes->append(sizeof(int32_t), '\0');
  return bytes->size();
}

void NormEncoder::Wrap(size_t begin, std::string* bytes) const {
  if (options_.check == NormCheck::kNone) return;
  const int32_t size = static_cast<int32_t>(bytes->size() - begin);
  std::memcpy(bytes->data() + begin - sizeof(size), &size, sizeof(size));
  AppendBytes(ByteSum(bytes->data() + begin, static_cast<size_t>(size)), bytes);
}

void NormEncoder::AppendHeader(const NormHeader& header, std::string* bytes) const {
  const size_t begin = BeginRecord(bytes);
  AppendBytes(header, bytes);
  Wrap(begin, bytes);
}

absl::Status NormEncoder::Append(const SampleBlock& block, size_t sample,
                                 std::string* bytes) const {
  const size_t begin = BeginRecord(bytes);
  CISTERN_RETURN_IF_ERROR(AppendPayload(block, sample, bytes));
  if (bytes->size() - begin > kNormRecordBytesMax) {
    return absl::OutOfRangeError("the record is larger than 64 MiB");
  }
  Wrap(begin, bytes);
  return absl::OkStatus();
}

absl::Status NormEncoder::AppendPayload(const SampleBlock& block, size_t sample,
                                        std::string* bytes) const {
  const SampleShape& shape = options_.shape;
  CISTERN_CHECK(block.sparse.size() == shape.slot_nums.size());
  for (uint32_t i = 0; i < shape.label_dim; ++i) {
    const float x = block.label[sample * shape.label_dim + i];
    if (!std::isfinite(x)) return absl::DataLossError(absl::StrCat("label ", i, " is not finite"));
    AppendBytes(x, bytes);
  }
  for (uint32_t i = 0; i < shape.dense_dim; ++i) {
    const float x = block.dense[sample * shape.dense_dim + i];
    if (!std::isfinite(x)) {
      return absl::DataLossError(absl::StrCat("dense feature ", i, " is not finite"));
    }
    AppendBytes(x, bytes);
  }
  for (size_t input = 0; input < shape.slot_nums.size(); ++input) {
    CISTERN_RETURN_IF_ERROR(AppendColumn(block, sample, input, bytes));
  }
  for (size_t input = 0; input < shape.key_weights.size(); ++input) {
    if (!shape.key_weights[input]) continue;
    CISTERN_RETURN_IF_ERROR(AppendWeights(block, sample, input, bytes));
  }
  return absl::OkStatus();
}

absl::Status NormEncoder::AppendColumn(const SampleBlock& block, size_t sample, size_t input,
                                       std::string* bytes) const {
  const SparseColumn& column = block.sparse[input];
  const uint32_t slots = options_.shape.slot_nums[input];
  const Key reserved = options_.wide_keys ? kReservedKey64 : kReservedKey32;
  const uint32_t* offsets = column.offsets.data() + sample * slots;
  const uint32_t max_keys = options_.shape.max_keys[input];
  if (max_keys != 0 && offsets[slots] - offsets[0] > max_keys) {
    return absl::OutOfRangeError(absl::StrCat("input ", input, " holds ",
                                              offsets[slots] - offsets[0],
                                              " keys, more than its bound of ", max_keys));
  }
  for (uint32_t slot = 0; slot < slots; ++slot) {
    AppendBytes(static_cast<int32_t>(offsets[slot + 1] - offsets[slot]), bytes);
    for (uint32_t k = offsets[slot]; k < offsets[slot + 1]; ++k) {
      const Key key = column.keys[k];
      if (key >= reserved) {
        return absl::OutOfRangeError(absl::StrCat("slot ", slot, " of input ", input, ": key ", key,
                                                  " is not in [0, ", reserved - 1, "]"));
      }
      if (options_.wide_keys) {
        AppendBytes(key, bytes);
      } else {
        AppendBytes(static_cast<uint32_t>(key), bytes);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status NormEncoder::AppendWeights(const SampleBlock& block, size_t sample, size_t input,
                                        std::string* bytes) const {
  const SparseColumn& column = block.sparse[input];
  const uint32_t slots = options_.shape.slot_nums[input];
  const uint32_t* offsets = column.offsets.data() + sample * slots;
  for (uint32_t slot = 0; slot < slots; ++slot) {
    absl::Span<const float> weights;
    if (!column.weights.empty()) {
      weights = absl::MakeConstSpan(column.weights)
                    .subspan(offsets[slot], offsets[slot + 1] - offsets[slot]);
    }
    if (AreAllOne(weights)) weights = {};
    AppendBytes(static_cast<int32_t>(weights.size()), bytes);
    for (const float weight : weights) {
      if (!std::isfinite(weight)) {
        return absl::DataLossError(
            absl::StrCat("slot ", slot, " of input ", input, ": a weight of a key is not finite"));
      }
      if (options_.wide_keys) {
        AppendBytes(Key{BitsOf(weight)}, bytes);
      } else {
        AppendBytes(BitsOf(weight), bytes);
      }
    }
  }
  return absl::OkStatus();
}

NormWriter::NormWriter(std::unique_ptr<NewFile> file, const NormWriterOptions& options)
    : file_(std::move(file)), encoder_(options) {
  header_.error_check = options.check == NormCheck::kSum ? 1 : 0;
  header_.label_dim = options.shape.label_dim;
  header_.dense_dim = options.shape.dense_dim;
  header_.slot_num = static_cast<int64_t>(SlotNum(ShapeInFiles(options.shape)));
}

absl::StatusOr<std::unique_ptr<NormWriter>> NormWriter::Create(FileSystem& files,
                                                               const std::string& path,
                                                               const NormWriterOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<NewFile> file, NewFile::Create(files, path));
  file->WillBeRead();
  std::unique_ptr<NormWriter> writer(new NormWriter(std::move(file), options));
  std::string header;
  writer->encoder_.AppendHeader(writer->header_, &header);
  CISTERN_RETURN_IF_ERROR(writer->file_->Append(header));
  return writer;
}

absl::Status NormWriter::Append(const SampleBlock& block, size_t first, size_t count) {
  CISTERN_CHECK(first + count <= block.size);
  for (size_t sample = first; sample < first + count; ++sample) {
    record_.clear();
    CISTERN_RETURN_IF_ERROR(AddContext(encoder_.Append(block, sample, &record_),
                                       absl::StrCat(file_->path(), ": record ", records())));
    CISTERN_RETURN_IF_ERROR(AppendRecords(record_, 1));
  }
  return absl::OkStatus();
}

absl::Status NormWriter::AppendRecords(absl::string_view bytes, uint64_t records) {
  CISTERN_RETURN_IF_ERROR(file_->Append(bytes));
  header_.number_of_records += static_cast<int64_t>(records);
  return absl::OkStatus();
}

absl::Status NormWriter::Close() {
  std::string header;
  encoder_.AppendHeader(header_, &header);
  CISTERN_RETURN_IF_ERROR(file_->WriteAt(0, header));
  return file_->Close();
}

}  // namespace cistern::data
