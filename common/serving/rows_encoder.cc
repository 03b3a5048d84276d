#include "common/serving/rows_encoder.h"

#include <cstring>

#include "common/base/check.h"
#include "common/base/hash.h"

namespace cistern {
namespace {

constexpr size_t kBufferBytes = size_t{64} << 10;

}  // namespace

RowsEncoder::RowsEncoder(const RowsShape& shape, ByteSink sink, Hashes hashes)
    : shape_(shape),
      weight_bytes_(WeightBytes(shape.precision, shape.dim)),
      sink_(std::move(sink)),
      hash_(hashes == Hashes::kHashed ? std::make_unique<StreamHash>() : nullptr),
      row_digest_(shape),
      row_(RowBytes(shape.precision, shape.dim), '\0') {
  buffer_.reserve(kBufferBytes + row_.size() + sizeof(RowsGroup));
}

RowsEncoder::~RowsEncoder() = default;

absl::Status RowsEncoder::Put(absl::string_view bytes) {
  buffer_.append(bytes.data(), bytes.size());
  return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
}

absl::Status RowsEncoder::Flush() {
  if (hash_ != nullptr) hash_->Add(buffer_);
  bytes_ += buffer_.size();
  const absl::Status taken = sink_(buffer_);
  buffer_.clear();
  return taken;
}

absl::Status RowsEncoder::Begin(absl::Span<const uint64_t> mixed) {
  mixed_ = mixed;
  layout_ = RowsLayout::ForWriting(shape_, mixed.size());
  uint64_t row = 0;
  for (uint64_t g = 0; g < layout_.groups; ++g) {
    const uint64_t first = row;
    for (; row < mixed.size() && layout_.GroupIndex(mixed[row]) == g; ++row) {
      CISTERN_CHECK(row == 0 || mixed[row - 1] < mixed[row]);
    }
    const RowsGroup group = GroupOf(first, row);
    CISTERN_RETURN_IF_ERROR(Put({reinterpret_cast<const char*>(&group), sizeof(group)}));
  }
  CISTERN_CHECK(row == mixed.size());
  return absl::OkStatus();
}

RowsGroup RowsEncoder::GroupOf(uint64_t first, uint64_t end) {
  RowsGroup group;
  const bool is_large = end - first > RowsGroup::kMaxTags;
  group.head = first | (is_large ? RowsGroup::kLarge : end - first) << 56;
  if (!is_large) {
    for (uint64_t row = first; row < end; ++row) {
      group.tags[row - first] = RowsLayout::TagOf(mixed_[row]);
    }
  } else if (layout_.packed()) {
    const uint64_t at = large_tags_.size();
    std::memcpy(group.tags, &at, sizeof(at));
    for (uint64_t row = first; row < end; ++row) {
      large_tags_ += static_cast<char>(RowsLayout::TagOf(mixed_[row]));
    }
  }
  return group;
}

absl::Status RowsEncoder::PutKey() {
  CISTERN_CHECK(next_ < mixed_.size());
  const uint64_t mixed = mixed_[next_++];
  const uint64_t field = layout_.KeyField(UnmixKey(mixed), mixed);
  return Put({reinterpret_cast<const char*>(&field), layout_.key_bytes});
}

absl::Status RowsEncoder::Add(const float* weights) {
  EncodeRow(shape_.precision, shape_.dim, /*key=*/0, weights, row_.data());
  return AddStored(row_.data() + sizeof(Key));
}

absl::Status RowsEncoder::AddStored(const char* weights) {
  CISTERN_RETURN_IF_ERROR(PutKey());
  if (hash_ != nullptr) digest_ += row_digest_.Of(UnmixKey(mixed_[next_ - 1]), weights);
  CISTERN_RETURN_IF_ERROR(Put({weights, weight_bytes_}));
  constexpr char kZeros[8] = {};
  return Put({kZeros, layout_.row_bytes - layout_.key_bytes - weight_bytes_});
}

absl::Status RowsEncoder::AddRemoved() {
  removed_.resize(RemovedBytes(mixed_.size()) / sizeof(uint64_t));
  removed_[next_ / 64] |= uint64_t{1} << (next_ % 64);
  ++removed_num_;
  CISTERN_RETURN_IF_ERROR(PutKey());
  return Put(std::string(layout_.row_bytes - layout_.key_bytes, '\0'));
}

absl::Status RowsEncoder::End() {
  CISTERN_CHECK(next_ == mixed_.size());
  if (layout_.packed()) {
    const uint64_t content = next_ * layout_.row_bytes + large_tags_.size();
    large_tags_.resize(large_tags_.size() + RoundUpTo8(content) - content);
    CISTERN_RETURN_IF_ERROR(Put(large_tags_));
  }
  CISTERN_RETURN_IF_ERROR(
      Put({reinterpret_cast<const char*>(removed_.data()), removed_.size() * sizeof(uint64_t)}));
  CISTERN_RETURN_IF_ERROR(Flush());
  RowsFooter footer;
  footer.format = layout_.format;
  footer.precision = static_cast<uint32_t>(shape_.precision);
  footer.rows = next_;
  footer.groups = layout_.groups;
  footer.dim = shape_.dim;
  footer.removed = removed_num_;
  if (hash_ != nullptr) footer.content_xxh3 = hash_->value();
  footer.self_xxh3 = footer.Self();
  CISTERN_RETURN_IF_ERROR(Put({reinterpret_cast<const char*>(&footer), sizeof(footer)}));
  CISTERN_RETURN_IF_ERROR(Flush());
  if (hash_ != nullptr) file_xxh3_ = hash_->value();
  return absl::OkStatus();
}

}  // namespace cistern
