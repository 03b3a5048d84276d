#include "server/checkpoint/shard_rows.h"

#include <algorithm>
#include <tuple>

namespace cistern::server {
namespace {

// Of a merge: memory for what is read ahead of all files, and the least of one.
constexpr size_t kReadAheadBytes = size_t{8} << 20, kMinPieceBytes = size_t{64} << 10;

}  // namespace

void OrderByCommit(std::vector<v1::RowFile>* files) {
  std::sort(files->begin(), files->end(), [](const v1::RowFile& a, const v1::RowFile& b) {
    return std::tuple(a.commit(), !a.base(), a.server_num(), a.server()) <
           std::tuple(b.commit(), !b.base(), b.server_num(), b.server());
  });
}

ShardSections SectionsOf(const std::vector<std::unique_ptr<RowFileReader>>& files, TableId table,
                         ShardIndex shard) {
  std::vector<const RowFileReader*> all;
  for (const std::unique_ptr<RowFileReader>& file : files) all.push_back(file.get());
  return SectionsOf(all, table, shard);
}

ShardSections SectionsOf(absl::Span<const RowFileReader* const> files, TableId table,
                         ShardIndex shard) {
  ShardSections found;
  for (const RowFileReader* file : files) {
    const RowFileHeader& header = file->header();
    if (shard % header.server_num != header.server) continue;
    if (header.base) found = ShardSections();
    const RowSection* section = file->FindSparse(table, shard);
    if (section == nullptr) continue;
    found.files.push_back(file);
    found.sections.push_back(section);
  }
  return found;
}

absl::Status MergeRows(const ShardSections& shard, const ValueLayout& layout,
                       const std::function<absl::Status(const RowFileReader::Cursor& row)>& visit) {
  // Many files share the memory for what is read ahead.
  const size_t piece_bytes = AlignedBuffer::RoundDown(
      std::clamp(kReadAheadBytes / std::max<size_t>(1, shard.sections.size()), kMinPieceBytes,
                 PieceReader::kPieceBytes));
  std::vector<RowFileReader::Cursor> cursors;  // oldest first; exhausted ones are removed
  for (size_t i = 0; i < shard.sections.size(); ++i) {
    RowFileReader::Cursor cursor = shard.files[i]->Walk(*shard.sections[i], layout, piece_bytes);
    CISTERN_ASSIGN_OR_RETURN(const bool more, cursor.Next());
    if (more) cursors.push_back(std::move(cursor));
  }
  while (!cursors.empty()) {
    size_t newest = 0;
    for (size_t i = 1; i < cursors.size(); ++i) {
      if (cursors[i].key() <= cursors[newest].key()) newest = i;
    }
    if (!cursors[newest].is_removed()) CISTERN_RETURN_IF_ERROR(visit(cursors[newest]));
    const Key key = cursors[newest].key();
    for (size_t i = newest + 1; i-- > 0;) {
      if (cursors[i].key() != key) continue;
      CISTERN_ASSIGN_OR_RETURN(const bool more, cursors[i].Next());
      if (!more) cursors.erase(cursors.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTotals(const ShardSections& shard, const ShardTotals& merged) {
  if (shard.sections.empty()) return absl::OkStatus();
  const RowSection& last = *shard.sections.back();
  if (merged == ShardTotals{last.total_rows, last.digest}) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      merged.rows, " rows with digest ", absl::Hex(merged.digest),
      " were read, but its newest file has ", last.total_rows, " with ", absl::Hex(last.digest)));
}

}  // namespace cistern::server
