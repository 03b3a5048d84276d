#include "common/serving/rows_file.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/base/checked.h"
#include "common/base/hash.h"

namespace cistern {
namespace {

constexpr uint64_t kRowsOfGroup = 24, kMostOfGroup = 56, kLargeGroup = 255;
constexpr size_t kFooterBytes = 64;
constexpr uint32_t kFormat = 1;
constexpr uint32_t kMostDim = 1 << 20;
constexpr uint64_t kMostRows = uint64_t{1} << 47;

struct Footer {
  char magic[8] = {'C', 'S', 'T', 'N', 'R', 'O', 'W', 'S'};
  uint32_t format = kFormat, precision = 0;
  uint64_t rows = 0, groups = 0;
  uint32_t dim = 0, zero = 0;
  uint64_t removed = 0, content_xxh3 = 0, self_xxh3 = 0;
  uint64_t Self() const { return HashBytes(this, sizeof(*this) - sizeof(self_xxh3)); }
};
static_assert(sizeof(Footer) == kFooterBytes);

uint64_t GroupIndex(uint64_t mixed, uint64_t groups) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(mixed) * groups >> 64);
}

uint64_t RemovedBytes(uint64_t rows) {
  return (rows + 63) / 64 * sizeof(uint64_t);
}

// A bit for each byte of `tags` that equals `tag`.
uint64_t MatchingTags(const uint8_t* tags, uint8_t tag) {
  uint64_t matches = 0;
#pragma GCC unroll 7
  for (int word = 0; word < 7; ++word) {
    typedef uint8_t Bytes __attribute__((vector_size(8)));
    Bytes eight;
    std::memcpy(&eight, tags + 8 * word, sizeof(eight));
    const auto equal = eight == tag;
    uint64_t mask = 0;
    std::memcpy(&mask, &equal, sizeof(mask));
    // The lowest bit of each byte of the mask, gathered into one byte.
    matches |= ((mask & 0x0101010101010101ull) * 0x0102040810204080ull >> 56) << (8 * word);
  }
  return matches;
}

}  // namespace

class RowsEncoder::Hash {
 public:
  Hash() : state_(XXH3_createState()) { XXH3_64bits_reset(state_); }
  ~Hash() { XXH3_freeState(state_); }
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;
  void Add(absl::string_view bytes) { XXH3_64bits_update(state_, bytes.data(), bytes.size()); }
  uint64_t Value() const { return XXH3_64bits_digest(state_); }

 private:
  XXH3_state_t* const state_;
};

RowsEncoder::RowsEncoder(const RowsShape& shape, ByteSink sink)
    : shape_(shape),
      row_bytes_(RowBytes(shape.precision, shape.dim)),
      sink_(std::move(sink)),
      hash_(std::make_unique<Hash>()),
      row_(row_bytes_, '\0') {}

RowsEncoder::~RowsEncoder() = default;

absl::Status RowsEncoder::Put(absl::string_view bytes) {
  hash_->Add(bytes);
  bytes_ += bytes.size();
  return sink_(bytes);
}

absl::Status RowsEncoder::Begin(absl::Span<const uint64_t> mixed) {
  rows_ = mixed.size();
  groups_ = rows_ / kRowsOfGroup + 1;
  size_t row = 0;
  for (uint64_t g = 0; g < groups_; ++g) {
    RowsView::Group group = {};
    const size_t first = row;
    for (; row < mixed.size() && GroupIndex(mixed[row], groups_) == g; ++row) {
      CISTERN_CHECK(row == 0 || mixed[row - 1] < mixed[row]);
      if (row - first < kMostOfGroup) group.tags[row - first] = static_cast<uint8_t>(mixed[row]);
    }
    const bool is_large = row - first > kMostOfGroup;
    if (is_large) group = {};
    group.head = first | (is_large ? kLargeGroup : row - first) << 56;
    CISTERN_RETURN_IF_ERROR(Put({reinterpret_cast<const char*>(&group), sizeof(group)}));
  }
  CISTERN_CHECK(row == mixed.size());
  return absl::OkStatus();
}

absl::Status RowsEncoder::Add(Key key, const float* weights) {
  EncodeRow(shape_.precision, shape_.dim, key, weights, row_.data());
  return AddEncoded(row_.data());
}

absl::Status RowsEncoder::AddEncoded(const char* row) {
  CISTERN_CHECK(next_ < rows_);
  ++next_;
  digest_ += HashBytes(row, row_bytes_);
  return Put({row, row_bytes_});
}

absl::Status RowsEncoder::AddRemoved(Key key) {
  CISTERN_CHECK(next_ < rows_);
  removed_.resize(RemovedBytes(rows_) / sizeof(uint64_t));
  removed_[next_ / 64] |= uint64_t{1} << (next_ % 64);
  ++next_;
  ++removed_num_;
  std::fill(row_.begin(), row_.end(), '\0');
  std::memcpy(row_.data(), &key, sizeof(key));
  return Put(row_);
}

absl::Status RowsEncoder::End() {
  CISTERN_CHECK(next_ == rows_);
  CISTERN_RETURN_IF_ERROR(
      Put({reinterpret_cast<const char*>(removed_.data()), removed_.size() * sizeof(uint64_t)}));
  Footer footer;
  footer.precision = static_cast<uint32_t>(shape_.precision);
  footer.rows = rows_;
  footer.groups = groups_;
  footer.dim = shape_.dim;
  footer.removed = removed_num_;
  footer.content_xxh3 = hash_->Value();
  footer.self_xxh3 = footer.Self();
  CISTERN_RETURN_IF_ERROR(Put({reinterpret_cast<const char*>(&footer), sizeof(footer)}));
  file_xxh3_ = hash_->Value();
  return absl::OkStatus();
}

absl::StatusOr<RowsView> RowsView::Parse(absl::string_view bytes) {
  Footer footer;
  if (bytes.size() < kFooterBytes) return absl::DataLossError("the file is truncated");
  std::memcpy(&footer, bytes.data() + bytes.size() - kFooterBytes, kFooterBytes);
  if (std::memcmp(footer.magic, Footer().magic, sizeof(footer.magic)) != 0) {
    return absl::DataLossError("not a file of rows for serving, or truncated");
  }
  if (footer.self_xxh3 != footer.Self()) return absl::DataLossError("the footer is corrupt");
  if (footer.format != kFormat || footer.precision > 3 || footer.zero != 0) {
    return absl::DataLossError(absl::StrCat("format ", footer.format, ", precision ",
                                            footer.precision,
                                            ": written by a newer version of Cistern"));
  }
  RowsView view;
  view.bytes_ = bytes;
  view.shape_ = {static_cast<RowPrecision>(footer.precision), footer.dim};
  const bool in_range = footer.dim > 0 && footer.dim <= kMostDim && footer.rows <= kMostRows &&
                        footer.groups > 0 && footer.groups <= kMostRows &&
                        footer.removed <= footer.rows;
  const uint64_t row_bytes = in_range ? RowBytes(view.shape_.precision, footer.dim) : 0;
  const auto rows = CheckedMul(footer.rows, row_bytes);
  const auto groups = CheckedMul(footer.groups, sizeof(Group));
  const uint64_t removed = footer.removed > 0 ? RemovedBytes(footer.rows) : 0;
  const auto content = rows && groups ? CheckedAdd(*rows, *groups) : std::nullopt;
  if (!in_range || !content || *content > bytes.size() ||
      *content + removed + kFooterBytes != bytes.size()) {
    return absl::DataLossError(absl::StrCat("the file has ", bytes.size(),
                                            " bytes, but its footer "
                                            "promises ",
                                            footer.rows, " rows of ", footer.dim, " weights"));
  }
  view.row_bytes_ = row_bytes;
  view.rows_ = footer.rows;
  view.group_num_ = footer.groups;
  view.groups_ = reinterpret_cast<const Group*>(bytes.data());
  view.first_row_ = bytes.data() + *groups;
  if (removed > 0) view.removed_ = reinterpret_cast<const uint64_t*>(bytes.data() + *content);
  view.content_xxh3_ = footer.content_xxh3;
  return view;
}

Key RowsView::key(uint64_t i) const {
  Key key;
  std::memcpy(&key, first_row_ + i * row_bytes_, sizeof(key));
  return key;
}

const char* RowsView::row(uint64_t i) const {
  return is_removed(i) ? nullptr : first_row_ + i * row_bytes_;
}

const RowsView::Group& RowsView::GroupOf(uint64_t mixed) const {
  return groups_[GroupIndex(mixed, group_num_)];
}

uint64_t RowsView::EndOf(const Group& group) const {
  const bool is_last = &group == groups_ + group_num_ - 1;
  return is_last ? rows_ : std::min((&group)[1].first(), rows_);
}

uint64_t RowsView::FindInLarge(const Group& group, uint64_t mixed) const {
  uint64_t begin = group.first(), end = EndOf(group);
  while (begin < end) {
    const uint64_t middle = begin + (end - begin) / 2;
    (MixKey(key(middle)) < mixed ? begin : end) = MixKey(key(middle)) < mixed ? middle + 1 : middle;
  }
  return begin < rows_ && MixKey(key(begin)) == mixed ? begin : rows_;
}

const char* RowsView::Find(Key key, State* state) const {
  const uint64_t mixed = MixKey(key);
  const Group& group = GroupOf(mixed);
  const uint64_t i = FindIn(group, TagsOf(group, mixed), mixed, key);
  if (i == rows_) return nullptr;
  *state = is_removed(i) ? kRemoved : kFound;
  return row(i);
}

uint64_t RowsView::TagsOf(const Group& group, uint64_t mixed) {
  const uint32_t count = std::min<uint32_t>(group.count(), kMostOfGroup);
  return MatchingTags(group.tags, static_cast<uint8_t>(mixed)) & ((uint64_t{1} << count) - 1);
}

uint64_t RowsView::FindIn(const Group& group, uint64_t matches, uint64_t mixed, Key wanted) const {
  if (group.is_large()) return FindInLarge(group, mixed);
  for (; matches != 0; matches &= matches - 1) {
    const uint64_t i = group.first() + static_cast<uint64_t>(__builtin_ctzll(matches));
    if (i < rows_ && key(i) == wanted) return i;  // the bound: a corrupt index
  }
  return rows_;
}

void RowsView::Lookup(absl::Span<const Key> keys, State* state, float* out, size_t stride) const {
  constexpr size_t kBlock = 32;  // keys whose cache misses overlap
  uint64_t mixed[kBlock];
  uint64_t matches[kBlock];  // as TagsOf
  for (size_t begin = 0; begin < keys.size(); begin += kBlock) {
    const size_t end = std::min(keys.size(), begin + kBlock);
    for (size_t i = begin; i < end; ++i) {
      if (state[i] != kUnknown) continue;
      mixed[i - begin] = MixKey(keys[i]);
      __builtin_prefetch(&GroupOf(mixed[i - begin]));
    }
    for (size_t i = begin; i < end; ++i) {
      if (state[i] != kUnknown) continue;
      const Group& group = GroupOf(mixed[i - begin]);
      const uint64_t rows = matches[i - begin] = TagsOf(group, mixed[i - begin]);
      if (rows == 0) continue;
      const uint64_t likely = group.first() + static_cast<uint64_t>(__builtin_ctzll(rows));
      const char* const row = first_row_ + std::min(likely, rows_) * row_bytes_;
      __builtin_prefetch(row);
      __builtin_prefetch(row + row_bytes_ - 1);
    }
    for (size_t i = begin; i < end; ++i) {
      if (state[i] != kUnknown) continue;
      const Group& group = GroupOf(mixed[i - begin]);
      const uint64_t found = FindIn(group, matches[i - begin], mixed[i - begin], keys[i]);
      if (found == rows_) continue;
      const char* const bytes = row(found);
      state[i] = bytes == nullptr ? kRemoved : kFound;
      if (bytes != nullptr) DecodeRow(shape_.precision, shape_.dim, bytes, out + i * stride);
    }
  }
}

absl::Status RowsView::Verify() const {
  if (HashBytes(bytes_.data(), bytes_.size() - kFooterBytes) != content_xxh3_) {
    return absl::DataLossError("checksum mismatch: the file is corrupt");
  }
  uint64_t row = 0;
  for (uint64_t g = 0; g < group_num_; ++g) {
    const Group& group = groups_[g];
    const uint64_t count = group.is_large() ? EndOf(group) - row : group.count();
    const bool sized = group.is_large() ? EndOf(group) > row : count <= kMostOfGroup;
    if (group.first() != row || !sized || rows_ - row < count) {
      return absl::DataLossError(absl::StrCat("group ", g, " does not start at row ", row));
    }
    for (uint64_t i = 0; i < count; ++i, ++row) {
      const uint64_t mixed = MixKey(key(row));
      const bool in_order = row == 0 || MixKey(key(row - 1)) < mixed;
      if (GroupIndex(mixed, group_num_) != g || !in_order ||
          (!group.is_large() && group.tags[i] != static_cast<uint8_t>(mixed))) {
        return absl::DataLossError(absl::StrCat("row ", row, " does not belong to group ", g));
      }
    }
  }
  if (row == rows_) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the groups list ", row, " of ", rows_, " rows"));
}

uint64_t RowsView::Digest() const {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < rows_; ++i) {
    if (const char* const bytes = row(i)) sum += HashBytes(bytes, row_bytes_);
  }
  return sum;
}

namespace {

// The rows of several layers in ascending order of the mixed key, the newest of each key.
class NewestRows {
 public:
  explicit NewestRows(absl::Span<const RowsView* const> layers)
      : layers_(layers), next_(layers.size(), 0) {}

  // Calls visit(key, row) for each; row is null if it is removed.
  template <typename Visit>
  absl::Status ForEach(const Visit& visit) {
    for (;;) {
      bool any = false;
      uint64_t least = 0;
      size_t newest = 0;
      for (size_t i = 0; i < layers_.size(); ++i) {
        if (next_[i] == layers_[i]->rows()) continue;
        const uint64_t mixed = MixKey(layers_[i]->key(next_[i]));
        if (!any || mixed <= least) newest = i;
        least = any ? std::min(least, mixed) : mixed;
        any = true;
      }
      if (!any) return absl::OkStatus();
      const Key key = UnmixKey(least);
      CISTERN_RETURN_IF_ERROR(visit(key, layers_[newest]->row(next_[newest])));
      for (size_t i = 0; i < layers_.size(); ++i) {
        if (next_[i] < layers_[i]->rows() && layers_[i]->key(next_[i]) == key) ++next_[i];
      }
    }
  }

 private:
  const absl::Span<const RowsView* const> layers_;
  std::vector<uint64_t> next_;  // by layer: its next row
};

}  // namespace

absl::Status MergeRows(absl::Span<const RowsView* const> layers, bool keep_removed,
                       RowsEncoder* out) {
  std::vector<uint64_t> mixed;
  CISTERN_RETURN_IF_ERROR(NewestRows(layers).ForEach([&](Key key, const char* row) {
    if (row != nullptr || keep_removed) mixed.push_back(MixKey(key));
    return absl::OkStatus();
  }));
  CISTERN_RETURN_IF_ERROR(out->Begin(mixed));
  CISTERN_RETURN_IF_ERROR(NewestRows(layers).ForEach([&](Key key, const char* row) -> absl::Status {
    if (row != nullptr) return out->AddEncoded(row);
    return keep_removed ? out->AddRemoved(key) : absl::OkStatus();
  }));
  return out->End();
}

}  // namespace cistern
