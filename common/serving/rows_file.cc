#include "common/serving/rows_file.h"

#include <algorithm>

#include "common/base/checked.h"

namespace cistern {
namespace {

constexpr uint32_t kMaxDim = 1 << 20;
constexpr uint64_t kMaxRows = uint64_t{1} << 47;

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

absl::StatusOr<RowsFooter> ReadFooter(absl::string_view bytes) {
  RowsFooter footer;
  if (bytes.size() < sizeof(footer)) return absl::DataLossError("the file is truncated");
  std::memcpy(&footer, bytes.data() + bytes.size() - sizeof(footer), sizeof(footer));
  if (std::memcmp(footer.magic, RowsFooter().magic, sizeof(footer.magic)) != 0) {
    return absl::DataLossError("not a file of rows for serving, or truncated");
  }
  if (footer.self_xxh3 != footer.Self()) return absl::DataLossError("the footer is corrupt");
  const bool known = footer.format == RowsLayout::kPlain ||
                     (footer.format == RowsLayout::kPacked &&
                      footer.precision == static_cast<uint32_t>(RowPrecision::kInt8));
  if (!known || footer.precision > 3 || footer.zero != 0) {
    return absl::DataLossError(absl::StrCat("format ", footer.format, ", precision ",
                                            footer.precision,
                                            ": written by a newer version of Cistern"));
  }
  return footer;
}

}  // namespace

absl::StatusOr<RowsView> RowsView::Parse(absl::string_view bytes) {
  CISTERN_ASSIGN_OR_RETURN(const RowsFooter footer, ReadFooter(bytes));
  const bool in_range = footer.dim > 0 && footer.dim <= kMaxDim && footer.rows <= kMaxRows &&
                        footer.groups > 0 && footer.groups <= kMaxRows &&
                        footer.removed <= footer.rows;
  RowsView view;
  view.bytes_ = bytes;
  if (in_range) {
    view.layout_ =
        RowsLayout::Of(static_cast<RowsLayout::Format>(footer.format),
                       {static_cast<RowPrecision>(footer.precision), footer.dim}, footer.groups);
  }
  const auto rows = CheckedMul(footer.rows, view.layout_.row_bytes);
  const auto groups = CheckedMul(footer.groups, sizeof(RowsGroup));
  const uint64_t end = sizeof(footer) + (footer.removed > 0 ? RemovedBytes(footer.rows) : 0);
  const auto content = rows && groups ? CheckedAdd(*rows, *groups) : std::nullopt;
  // What is left are tags: at most one a row, and padding.
  const uint64_t tags = content && *content <= bytes.size() && end <= bytes.size() - *content
                            ? bytes.size() - *content - end
                            : UINT64_MAX;
  if (!in_range || tags > (view.layout_.packed() ? footer.rows + 7 : 0) ||
      (bytes.size() - end) % 8 != 0) {
    return absl::DataLossError(absl::StrCat("the file has ", bytes.size(),
                                            " bytes, but its footer promises ", footer.rows,
                                            " rows of ", footer.dim, " weights"));
  }
  view.rows_ = footer.rows;
  view.groups_ = reinterpret_cast<const RowsGroup*>(bytes.data());
  view.first_row_ = bytes.data() + *groups;
  view.large_tags_ = bytes.substr(*content, tags);
  if (footer.removed > 0) {
    view.removed_ = reinterpret_cast<const uint64_t*>(bytes.data() + *content + tags);
  }
  view.content_xxh3_ = footer.content_xxh3;
  return view;
}

// A corrupt group may list any rows and tags; what is read stays within the file.
uint64_t RowsView::MixedAt(uint64_t i, uint64_t g) const {
  const uint64_t field = layout_.FieldAt(RowAt(i));
  if (!layout_.packed()) return MixKey(field);
  const RowsGroup& group = groups_[g];
  const uint64_t place = i - group.first();
  uint8_t tag = 0;
  if (!group.is_large()) {
    if (place < RowsGroup::kMaxTags) tag = group.tags[place];
  } else if (const uint64_t at = group.tags_at() + place; at < large_tags_.size()) {
    tag = static_cast<uint8_t>(large_tags_[at]);
  }
  return layout_.MixedOf(field, g, tag);
}

uint64_t RowsView::EndOf(uint64_t g) const {
  return g + 1 == layout_.groups ? rows_ : std::min(groups_[g + 1].first(), rows_);
}

uint64_t RowsView::FindInLarge(uint64_t g, uint64_t mixed) const {
  const uint64_t limit = EndOf(g);
  uint64_t begin = groups_[g].first(), end = limit;
  while (begin < end) {
    const uint64_t middle = begin + (end - begin) / 2;
    const bool below = MixedAt(middle, g) < mixed;
    (below ? begin : end) = below ? middle + 1 : middle;
  }
  return begin < limit && MixedAt(begin, g) == mixed ? begin : rows_;
}

uint64_t RowsView::TagsOf(const RowsGroup& group, uint64_t mixed) {
  const uint64_t count = std::min<uint64_t>(group.count(), RowsGroup::kMaxTags);
  return MatchingTags(group.tags, RowsLayout::TagOf(mixed)) & ((uint64_t{1} << count) - 1);
}

template <bool kPacked>
uint64_t RowsView::FindIn(const RowsGroup& group, uint64_t matches, uint64_t mixed, Key key) const {
  if (group.is_large()) return FindInLarge(static_cast<uint64_t>(&group - groups_), mixed);
  const uint64_t wanted = kPacked ? layout_.KeyField(key, mixed) : key;
  for (; matches != 0; matches &= matches - 1) {
    const uint64_t i = group.first() + static_cast<uint64_t>(__builtin_ctzll(matches));
    if (i >= rows_) continue;  // a corrupt index
    uint64_t field = 0;
    std::memcpy(&field, RowAt(i), sizeof(field));
    if ((kPacked ? field & layout_.field_mask : field) == wanted) return i;
  }
  return rows_;
}

template <bool kPacked, class Found>
void RowsView::ForFoundIn(absl::Span<const Key> keys, State* state, const Found& found) const {
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
      const RowsGroup& group = GroupOf(mixed[i - begin]);
      const uint64_t rows = matches[i - begin] = TagsOf(group, mixed[i - begin]);
      if (rows == 0) continue;
      const uint64_t likely = group.first() + static_cast<uint64_t>(__builtin_ctzll(rows));
      const char* const row = RowAt(std::min(likely, rows_));
      __builtin_prefetch(row);
      __builtin_prefetch(row + layout_.row_bytes - 1);
    }
    for (size_t i = begin; i < end; ++i) {
      if (state[i] != kUnknown) continue;
      const RowsGroup& group = GroupOf(mixed[i - begin]);
      const uint64_t row = FindIn<kPacked>(group, matches[i - begin], mixed[i - begin], keys[i]);
      if (row == rows_) continue;
      state[i] = is_removed(row) ? kRemoved : kFound;
      if (state[i] == kFound) found(i, RowAt(row) + layout_.key_bytes);
    }
  }
}

void RowsView::Lookup(absl::Span<const Key> keys, State* state, float* out, size_t stride) const {
  const RowsShape shape = layout_.shape;
  ForFound(keys, state, [=](size_t i, const char* weights) {
    DecodeWeights(shape.precision, shape.dim, weights, out + i * stride);
  });
}

void RowsView::Find(absl::Span<const Key> keys, State* state, const char** weights) const {
  ForFound(keys, state, [=](size_t i, const char* found) { weights[i] = found; });
}

void RowsView::Cursor::Settle() {
  if (done()) return;
  while (row_ >= view_.EndOf(group_)) {
    if (group_ + 1 == view_.layout_.groups) break;
    ++group_;
  }
  mixed_ = view_.MixedAt(row_, group_);
}

absl::Status RowsView::Verify() const {
  if (HashBytes(bytes_.data(), bytes_.size() - sizeof(RowsFooter)) == content_xxh3_) {
    return VerifyGroups();
  }
  return absl::DataLossError("checksum mismatch: the file is corrupt");
}

absl::Status RowsView::VerifyGroups() const {
  uint64_t row = 0, large = 0, before = 0;
  for (uint64_t g = 0; g < layout_.groups; ++g) {
    const RowsGroup& group = groups_[g];
    const uint64_t end = EndOf(g), count = end - std::min(row, end);
    const bool sized = group.is_large() ? count > RowsGroup::kMaxTags
                                        : count == group.count() && count <= RowsGroup::kMaxTags;
    if (group.first() != row || !sized ||
        (group.is_large() && layout_.packed() && group.tags_at() != large)) {
      return absl::DataLossError(absl::StrCat("group ", g, " does not start at row ", row));
    }
    if (group.is_large() && layout_.packed()) large += count;
    for (; row < end; ++row) {
      const uint64_t mixed = MixedAt(row, g);
      const uint64_t place = row - group.first();
      if (layout_.GroupIndex(mixed) != g || (row > 0 && mixed <= before) ||
          (!group.is_large() && group.tags[place] != RowsLayout::TagOf(mixed))) {
        return absl::DataLossError(absl::StrCat("row ", row, " does not belong to group ", g));
      }
      before = mixed;
    }
  }
  if (row != rows_) {
    return absl::DataLossError(absl::StrCat("the groups list ", row, " of ", rows_, " rows"));
  }
  const uint64_t content = rows_ * layout_.row_bytes + large;
  if (rows_ * layout_.row_bytes + large_tags_.size() == RoundUpTo8(content)) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(large_tags_.size(), " bytes of tags instead of ", large));
}

uint64_t RowsView::Digest() const {
  ServedRowDigest digest(layout_.shape);
  uint64_t sum = 0;
  for (Cursor row(*this); !row.done(); row.Next()) {
    if (const char* weights = row.weights()) sum += digest.Of(UnmixKey(row.mixed()), weights);
  }
  return sum;
}

}  // namespace cistern
