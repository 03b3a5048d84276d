#include "worker/data/format/norm_file.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "worker/data/format/file_list.h"
#include "worker/data/format/key_weights.h"

namespace cistern::data {
namespace {

const char* Name(NormCheck check) {
  return check == NormCheck::kSum ? "Sum" : "None";
}

// NaN and infinity have all exponent bits set.
bool IsFinite(const char* bytes) {
  return (Load<uint32_t>(bytes) & 0x7F800000u) != 0x7F800000u;
}

// Index of the first NaN or infinity among `count` floats; `count` if all are finite.
size_t FindNotFinite(const char* bytes, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!IsFinite(bytes + i * sizeof(float))) return i;
  }
  return count;
}

void AppendFloats(const char* bytes, size_t count, std::vector<float>* out) {
  if (count == 0) return;
  const size_t size = out->size();
  out->resize(size + count);
  std::memcpy(out->data() + size, bytes, count * sizeof(float));
}

}  // namespace

NormFile::NormFile(std::unique_ptr<ByteStream> stream, const NormOptions& options)
    : stream_(std::move(stream)),
      options_(options),
      slot_num_(SlotNum(options.shape)),
      parse_(options.wide_keys ? &NormFile::ParseSample<true> : &NormFile::ParseSample<false>) {
  const SampleShape& shape = options_.shape;
  options_.shape.max_keys.resize(shape.slot_nums.size(), 0);
  record_min_ = sizeof(float) * (size_t{shape.label_dim} + shape.dense_dim) + 4 * slot_num_;
  record_max_ = record_min_;
  for (uint32_t max_keys : options_.shape.max_keys) {
    record_max_ += max_keys == 0 ? kNormRecordBytesMax : size_t{max_keys} * 8;
  }
  record_max_ = std::max(record_min_, std::min(record_max_, kNormRecordBytesMax));
}

absl::StatusOr<std::unique_ptr<NormFile>> NormFile::Open(const std::string& path,
                                                         const NormOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stream, ByteStream::Open(path));
  return Over(std::move(stream), options);
}

absl::StatusOr<std::unique_ptr<NormFile>> NormFile::Over(std::unique_ptr<ByteStream> stream,
                                                         const NormOptions& options) {
  std::unique_ptr<NormFile> file(new NormFile(std::move(stream), options));
  CISTERN_ASSIGN_OR_RETURN(const NormBegin begin, ReadNormBegin(*file->stream_));
  file->header_ = begin.header;
  CISTERN_RETURN_IF_ERROR(file->CheckHeader(begin));
  return file;
}

absl::Status NormFile::CheckHeader(const NormBegin& begin) const {
  if (begin.check != options_.check) {
    return absl::InvalidArgumentError(absl::StrCat(
        stream_->path(), " has check ", Name(begin.check), ", but the data layer specifies ",
        Name(options_.check), ": set \"check\": \"", Name(begin.check), "\" there"));
  }
  const SampleShape& shape = options_.shape;
  std::string keys;
  if (header_.label_dim != shape.label_dim) keys += ", label.label_dim";
  if (header_.dense_dim != shape.dense_dim) keys += ", dense.dense_dim";
  if (header_.slot_num != static_cast<int64_t>(slot_num_)) keys += ", the sum of sparse[].slot_num";
  if (keys.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(stream_->path(), " holds samples of ",
                   NormShapeText(header_.label_dim, header_.dense_dim, header_.slot_num),
                   ", but the model expects ",
                   NormShapeText(shape.label_dim, shape.dense_dim, static_cast<int64_t>(slot_num_)),
                   shape.weighted ? " with the weight (cistern.sample_weights)" : "",
                   HasKeyWeights(shape) ? ", with weights of keys (cistern.key_weights)" : "",
                   ": in the data layer, correct ", keys.substr(2)));
}

absl::StatusOr<size_t> NormFile::Read(size_t max_samples, SampleBlock* block) {
  const uint64_t begin = stream_->offset();
  size_t done = 0;
  for (; done < max_samples && record_ < header_.number_of_records; ++done, ++record_) {
    absl::Status status = ReadRecord(block);
    if (!status.ok()) return Explain(status);
  }
  if (options_.counts != nullptr) options_.counts->decoded_bytes += stream_->offset() - begin;
  if (record_ == header_.number_of_records) CISTERN_RETURN_IF_ERROR(CheckEnd());
  return done;
}

absl::StatusOr<uint64_t> NormFile::Skip(uint64_t max_samples, SampleBlock* scratch) {
  const auto begin = static_cast<uint64_t>(record_);
  const uint64_t count =
      std::min(max_samples, static_cast<uint64_t>(header_.number_of_records) - begin);
  if (options_.places != nullptr) CISTERN_RETURN_IF_ERROR(SeekTowards(begin + count));
  CISTERN_RETURN_IF_ERROR(StepOver(begin + count - static_cast<uint64_t>(record_), scratch));
  if (options_.places != nullptr && count > 0) {
    options_.places->Add(stream_->path(), {begin + count, stream_->offset()});
  }
  return count;
}

absl::Status NormFile::SeekTowards(uint64_t target) {
  const auto place = options_.places->AtOrBefore(stream_->path(), target);
  if (!place || place->record <= static_cast<uint64_t>(record_)) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(const bool found, stream_->Seek(place->byte));
  if (found) record_ = static_cast<int64_t>(place->record);
  return absl::OkStatus();
}

absl::Status NormFile::StepOver(uint64_t records, SampleBlock* scratch) {
  for (uint64_t done = 0; done < records; ++done, ++record_) {
    CISTERN_RETURN_IF_ERROR(stream_->Fill(record_min_));
    if (const size_t size = AvailableRecord(); size > 0) {
      stream_->Consume(size);
      continue;
    }
    scratch->Reset(options_.shape.slot_nums.size());
    const absl::Status status = ReadRecord(scratch);
    if (!status.ok()) return Explain(status);
  }
  return record_ == header_.number_of_records ? CheckEnd() : absl::OkStatus();
}

size_t NormFile::AvailableRecord() const {
  const char* begin = stream_->data();
  const size_t available = stream_->available();
  if (options_.check != NormCheck::kSum) {
    return options_.wide_keys ? PlainSize<true>(begin, available)
                              : PlainSize<false>(begin, available);
  }
  if (available < 4) return 0;
  const int64_t length = Load<int32_t>(begin);
  if (length < static_cast<int64_t>(record_min_) || length > static_cast<int64_t>(record_max_)) {
    return 0;
  }
  const size_t size = static_cast<size_t>(length) + 5;
  return size <= available ? size : 0;
}

template <bool kWide>
size_t NormFile::PlainSize(const char* begin, size_t available) const {
  constexpr size_t kKeyBytes = kWide ? 8 : 4;
  constexpr uint32_t kNnzMax = kNormRecordBytesMax / kKeyBytes;
  size_t size = sizeof(float) * (size_t{options_.shape.label_dim} + options_.shape.dense_dim);
  for (size_t input = 0; input < options_.shape.slot_nums.size(); ++input) {
    const uint32_t max_keys = options_.shape.max_keys[input];
    uint32_t left = max_keys == 0 ? kNnzMax : std::min(max_keys, kNnzMax);
    for (uint32_t slot = 0; slot < options_.shape.slot_nums[input]; ++slot) {
      if (available < size + 4) return 0;
      const auto nnz = Load<uint32_t>(begin + size);
      if (nnz > left) return 0;
      left -= nnz;
      size += 4 + kKeyBytes * nnz;
    }
  }
  return size <= available ? size : 0;
}

absl::Status NormFile::ReadRecord(SampleBlock* block) {
  const size_t size = block->size;
  keys_before_.clear();
  for (const SparseColumn& column : block->sparse) {
    keys_before_.push_back(column.keys.size());
    if (column.keys.size() > std::numeric_limits<uint32_t>::max() - kNormRecordBytesMax) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the ", size,
                       " samples read at once hold too many keys to count in 32 bits: lower the "
                       "batch size"));
    }
  }
  absl::Status status = options_.check == NormCheck::kSum ? ReadSummed(block) : ReadPlain(block);
  if (status.ok()) {
    ++block->size;
  } else {
    CutBack(size, keys_before_, block);
  }
  return status;
}

void NormFile::CutBack(size_t size, const std::vector<size_t>& keys, SampleBlock* block) const {
  const SampleShape& shape = options_.shape;
  block->label.resize(size * shape.label_dim);
  block->dense.resize(size * shape.dense_dim);
  for (size_t i = 0; i < block->sparse.size(); ++i) {
    block->sparse[i].offsets.resize(size * shape.slot_nums[i] + 1);
    block->sparse[i].keys.resize(keys[i]);
  }
}

absl::Status NormFile::ReadPlain(SampleBlock* block) {
  size_t want = record_min_;
  while (true) {
    CISTERN_RETURN_IF_ERROR(stream_->Fill(want));
    const char* begin = stream_->data();
    const char* next = begin;
    const Step step = (this->*parse_)(begin, begin + stream_->available(), block, &next);
    if (step == Step::kDone) {
      stream_->Consume(static_cast<size_t>(next - begin));
      return absl::OkStatus();
    }
    if (step == Step::kBad) return bad_;
    if (stream_->at_end()) {
      return WithKind(absl::DataLossError(absl::StrCat(
                          "the file is cut short: it ends at byte ",
                          stream_->offset() + stream_->available(), ", inside ", place_,
                          "; its header declares ", header_.number_of_records, " records")),
                      ErrorKind::kCutShort);
    }
    CutBack(block->size, keys_before_, block);
    want = wanted_;
  }
}

absl::Status NormFile::ReadSummed(SampleBlock* block) {
  const auto cut_short = [this](absl::string_view where) {
    return WithKind(
        absl::DataLossError(absl::StrCat(
            "the file is cut short: it ends at byte ", stream_->offset() + stream_->available(),
            ", ", where, "; its header declares ", header_.number_of_records, " records")),
        ErrorKind::kCutShort);
  };
  CISTERN_RETURN_IF_ERROR(stream_->Fill(4));
  if (stream_->available() < 4) return cut_short("before the record's length");
  const int64_t length = Load<int32_t>(stream_->data());
  if (length < static_cast<int64_t>(record_min_) || length > static_cast<int64_t>(record_max_)) {
    return absl::DataLossError(absl::StrCat("its length is ", length, " bytes, outside [",
                                            record_min_, ", ", record_max_,
                                            "] that the model allows: the file is corrupt, or the "
                                            "model's sparse[].max_feature_num_per_sample or "
                                            "max_nnz is less than the data's"));
  }
  const size_t size = static_cast<size_t>(length);
  CISTERN_RETURN_IF_ERROR(stream_->Fill(size + 5));
  if (stream_->available() < size + 5) return cut_short("inside the record");
  const char* payload = stream_->data() + 4;
  const int sum = ByteSum(payload, size), promised = static_cast<uint8_t>(payload[size]);
  if (sum != promised) {
    return absl::DataLossError(absl::StrCat("its bytes sum to ", sum, ", but its check byte is ",
                                            promised, ": the file is corrupt"));
  }
  const char* next = payload;
  const Step step = (this->*parse_)(payload, payload + size, block, &next);
  if (step == Step::kBad) return bad_;
  if (step == Step::kNeedMore) {
    return absl::DataLossError(
        absl::StrCat("its ", size, " bytes end inside ", place_, ": the file is corrupt"));
  }
  if (next != payload + size) {
    return absl::DataLossError(absl::StrCat("its length is ", size, " bytes, but its slots take ",
                                            next - payload, ": the file is corrupt"));
  }
  stream_->Consume(size + 5);
  return absl::OkStatus();
}

template <bool kWide>
NormFile::Step NormFile::ParseSample(const char* begin, const char* end, SampleBlock* block,
                                     const char** next) {
  parse_begin_ = begin;
  const size_t labels = options_.shape.label_dim, dense = options_.shape.dense_dim;
  const char* place = begin;
  if (static_cast<size_t>(end - place) < sizeof(float) * (labels + dense)) {
    wanted_ = record_min_;
    place_ = "labels and dense features";
    return Step::kNeedMore;
  }
  const size_t odd = FindNotFinite(place, labels + dense);
  if (odd < labels + dense) {
    bad_ = absl::DataLossError(absl::StrCat(odd < labels ? "label " : "dense feature ",
                                            odd < labels ? odd : odd - labels,
                                            " is not a finite number: fill or drop such samples"));
    return Step::kBad;
  }
  AppendFloats(place, labels, &block->label);
  AppendFloats(place + labels * sizeof(float), dense, &block->dense);
  place += sizeof(float) * (labels + dense);
  for (size_t input = 0; input < block->sparse.size(); ++input) {
    const Step step = ParseColumn<kWide>(input, &place, end, &block->sparse[input]);
    if (step != Step::kDone) return step;
  }
  *next = place;
  return Step::kDone;
}

template <bool kWide>
NormFile::Step NormFile::ParseColumn(size_t input, const char** place, const char* end,
                                     SparseColumn* column) {
  using FileKey = std::conditional_t<kWide, uint64_t, uint32_t>;
  constexpr Key kReserved = kWide ? kReservedKey64 : kReservedKey32;
  constexpr uint32_t kNnzMax = kNormRecordBytesMax / sizeof(FileKey);
  const uint32_t slots = options_.shape.slot_nums[input];
  const uint32_t max_keys = options_.shape.max_keys[input];
  uint32_t left = max_keys == 0 ? kNnzMax : std::min(max_keys, kNnzMax);
  const bool bounded = input < options_.slot_starts.size() && !options_.slot_starts[input].empty();
  const Key* starts = bounded ? options_.slot_starts[input].data() : nullptr;
  const size_t first = column->offsets.size();
  column->offsets.resize(first + slots);
  const char* p = *place;
  for (uint32_t slot = 0; slot < slots; ++slot) {
    const size_t bytes = static_cast<size_t>(end - p);
    const int32_t nnz = bytes < 4 ? 0 : Load<int32_t>(p);
    if (static_cast<uint32_t>(nnz) > left) return Refuse<kWide>(input, slot, nnz, left);
    const size_t size = 4 + sizeof(FileKey) * static_cast<size_t>(nnz);
    if (bytes < size) {
      wanted_ = static_cast<size_t>(p - parse_begin_) + size + 4 * (slots - 1 - slot);
      place_ = absl::StrCat("slot ", slot, " of input ", input);
      return Step::kNeedMore;
    }
    p += 4;
    const Key least = starts != nullptr ? starts[slot] : 0;
    const Key end_of_keys = starts != nullptr ? std::min(starts[slot + 1], kReserved) : kReserved;
    for (int32_t k = 0; k < nnz; ++k, p += sizeof(FileKey)) {
      const Key key = Load<FileKey>(p);
      if (key < least || key >= end_of_keys) {
        if (key < kReserved) return RefuseKey(input, slot, key);
        bad_ = absl::OutOfRangeError(absl::StrCat(
            "slot ", slot, " of input ", input, ": key ", k, " is ",
            key == kReserved ? "the reserved key " : "negative: ", static_cast<int64_t>(key),
            "; keys must be in [0, ", kReserved - 1, "]"));
        return Step::kBad;
      }
      column->keys.push_back(key);
    }
    left -= static_cast<uint32_t>(nnz);
    column->offsets[first + slot] = static_cast<uint32_t>(column->keys.size());
  }
  *place = p;
  return Step::kDone;
}

template <bool kWide>
NormFile::Step NormFile::Refuse(size_t input, size_t slot, int32_t nnz, uint32_t left) {
  const uint32_t max_keys = options_.shape.max_keys[input];
  std::string why;
  if (nnz < 0) {
    why = ", a negative number: the file is corrupt or does not fit the model";
  } else if (max_keys == 0) {
    why = ", more than a record can hold";
  } else {
    why = absl::StrCat(", but only ", left, " of the ", max_keys,
                       " that a sample may hold in this input are left: raise sparse[", input,
                       "].max_feature_num_per_sample");
  }
  bad_ = absl::OutOfRangeError(
      absl::StrCat("slot ", slot, " of input ", input, " declares ", nnz, " keys", why));
  return Step::kBad;
}

NormFile::Step NormFile::RefuseKey(size_t input, size_t slot, Key key) {
  const std::vector<Key>& starts = options_.slot_starts[input];
  bad_ = absl::OutOfRangeError(
      absl::StrCat("slot ", slot, " of input ", input, ": key ", key, " is outside [", starts[slot],
                   ", ", starts[slot + 1], ") that slot_size_array[", slot,
                   "] of its one-hot embedding allows: raise that size, or number the slot's keys "
                   "from the sum of the sizes before it"));
  return Step::kBad;
}

absl::Status NormFile::CheckEnd() {
  CISTERN_RETURN_IF_ERROR(stream_->Fill(1));
  if (stream_->available() == 0) return absl::OkStatus();
  return AddContext(absl::DataLossError(absl::StrCat(
                        "bytes follow the last of the ", header_.number_of_records,
                        " records that the header declares, at byte ", stream_->offset(),
                        ": the file is corrupt or does not fit the model", WidthHint())),
                    stream_->path());
}

absl::Status NormFile::Explain(const absl::Status& status) const {
  return WithMessage(status, absl::StrCat(stream_->path(), ": record ", record_, ": ",
                                          status.message(), WidthHint()));
}

std::string NormFile::WidthHint() const {
  if (!hints_ || slot_num_ == 0) return "";
  constexpr size_t kRecords = 1000;
  NormOptions other = options_;
  other.wide_keys = !options_.wide_keys;
  other.counts = nullptr;
  absl::StatusOr<std::unique_ptr<NormFile>> file = Open(stream_->path(), other);
  if (!file.ok()) return "";
  (*file)->hints_ = false;
  SampleBlock block;
  block.Reset(options_.shape.slot_nums.size());
  if (!(*file)->Read(kRecords, &block).ok()) return "";
  return absl::StrCat(" (its records are valid with ", other.wide_keys ? 8 : 4,
                      "-byte keys: is solver.input_key_type ", other.wide_keys ? "I64" : "I32",
                      "?)");
}

}  // namespace cistern::data
