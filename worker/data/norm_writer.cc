#include "worker/data/norm_writer.h"

#include <cmath>

#include "common/check.h"

namespace cistern {
namespace {

template <typename T>
void AppendBytes(const T& value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

NormWriter::NormWriter(std::unique_ptr<OutputFile> file, const NormWriterOptions& options)
    : file_(std::move(file)), options_(options) {
  options_.shape.max_keys.resize(options_.shape.slot_nums.size(), 0);
  header_.error_check = options_.check == NormCheck::kSum ? 1 : 0;
  header_.label_dim = options_.shape.label_dim;
  header_.dense_dim = options_.shape.dense_dim;
  header_.slot_num = static_cast<int64_t>(SlotNum(options_.shape));
}

absl::StatusOr<std::unique_ptr<NormWriter>> NormWriter::Create(const std::string& path,
                                                               const NormWriterOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, OutputFile::Create(path));
  std::unique_ptr<NormWriter> writer(new NormWriter(std::move(file), options));
  std::string header;
  AppendBytes(writer->header_, &header);
  CISTERN_RETURN_IF_ERROR(writer->file_->Append(writer->Wrapped(header)));
  return writer;
}

absl::Status NormWriter::Append(const SampleBlock& block, size_t first, size_t count) {
  CISTERN_CHECK(first + count <= block.size);
  CISTERN_CHECK(block.sparse.size() == options_.shape.slot_nums.size());
  for (size_t sample = first; sample < first + count; ++sample) {
    CISTERN_RETURN_IF_ERROR(
        AddContext(Encode(block, sample), absl::StrCat(file_->path(), ": record ", records())));
    CISTERN_RETURN_IF_ERROR(options_.check == NormCheck::kSum ? file_->Append(Wrapped(payload_))
                                                              : file_->Append(payload_));
    ++header_.number_of_records;
  }
  return absl::OkStatus();
}

absl::Status NormWriter::Encode(const SampleBlock& block, size_t sample) {
  const SampleShape& shape = options_.shape;
  payload_.clear();
  for (uint32_t i = 0; i < shape.label_dim; ++i) {
    const float x = block.label[sample * shape.label_dim + i];
    if (!std::isfinite(x)) return absl::DataLossError(absl::StrCat("label ", i, " is not finite"));
    AppendBytes(x, &payload_);
  }
  for (uint32_t i = 0; i < shape.dense_dim; ++i) {
    const float x = block.dense[sample * shape.dense_dim + i];
    if (!std::isfinite(x)) {
      return absl::DataLossError(absl::StrCat("dense feature ", i, " is not finite"));
    }
    AppendBytes(x, &payload_);
  }
  for (size_t input = 0; input < shape.slot_nums.size(); ++input) {
    CISTERN_RETURN_IF_ERROR(EncodeColumn(block, sample, input));
  }
  if (payload_.size() <= kNormRecordBytesMax) return absl::OkStatus();
  return absl::OutOfRangeError("the record is larger than 64 MiB");
}

absl::Status NormWriter::EncodeColumn(const SampleBlock& block, size_t sample, size_t input) {
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
    AppendBytes(static_cast<int32_t>(offsets[slot + 1] - offsets[slot]), &payload_);
    for (uint32_t k = offsets[slot]; k < offsets[slot + 1]; ++k) {
      const Key key = column.keys[k];
      if (key >= reserved) {
        return absl::OutOfRangeError(absl::StrCat("slot ", slot, " of input ", input, ": key ", key,
                                                  " does not lie in [0, ", reserved - 1, "]"));
      }
      if (options_.wide_keys) {
        AppendBytes(key, &payload_);
      } else {
        AppendBytes(static_cast<uint32_t>(key), &payload_);
      }
    }
  }
  return absl::OkStatus();
}

std::string NormWriter::Wrapped(const std::string& payload) const {
  if (options_.check == NormCheck::kNone) return payload;
  std::string record;
  record.reserve(payload.size() + 5);
  AppendBytes(static_cast<int32_t>(payload.size()), &record);
  record += payload;
  AppendBytes(ByteSum(payload.data(), payload.size()), &record);
  return record;
}

absl::Status NormWriter::Close() {
  std::string header;
  AppendBytes(header_, &header);
  CISTERN_RETURN_IF_ERROR(file_->WriteAt(0, Wrapped(header)));
  return file_->Close();
}

}  // namespace cistern
