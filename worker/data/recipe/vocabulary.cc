#include "worker/data/recipe/vocabulary.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/stream_hash.h"
#include "common/io/new_file.h"
#include "worker/data/recipe/line_reader.h"

namespace cistern {
namespace {

constexpr char kFirstWords[] = "cistern vocabulary 1 ";

}  // namespace

void Vocabulary::Keep(uint64_t min_count) {
  for (auto& [name, counts] : columns_) {
    absl::erase_if(counts, [&](const auto& entry) { return entry.second < min_count; });
  }
}

uint64_t Vocabulary::size() const {
  uint64_t size = 0;
  for (const auto& [name, counts] : columns_) size += counts.size();
  return size;
}

const Vocabulary::Counts& Vocabulary::Of(const std::string& name) const {
  static const Counts none;
  const auto found = columns_.find(name);
  return found == columns_.end() ? none : found->second;
}

absl::StatusOr<uint64_t> Vocabulary::Write(FileSystem& files, const std::string& path) const {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> file, NewFile::Create(files, path));
  CISTERN_RETURN_IF_ERROR(file->Append(absl::StrCat(kFirstWords, kind_, "\n")));
  for (const auto& [name, counts] : columns_) {
    std::vector<std::pair<Key, uint32_t>> sorted(counts.begin(), counts.end());
    std::sort(sorted.begin(), sorted.end());
    for (const auto& [key, count] : sorted) {
      CISTERN_RETURN_IF_ERROR(file->Append(absl::StrCat(name, "\t", key, "\t", count, "\n")));
    }
  }
  CISTERN_RETURN_IF_ERROR(file->Close());
  return file->xxh3();
}

absl::StatusOr<uint64_t> Vocabulary::Read(const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<LineReader> lines, LineReader::Open(path));
  absl::string_view line;
  CISTERN_ASSIGN_OR_RETURN(bool found, lines->Next(&line));
  absl::string_view kind = line;
  if (!found || !absl::ConsumePrefix(&kind, kFirstWords)) {
    return absl::DataLossError(absl::StrCat(
        path, " is not a vocabulary: its first line must begin with '", kFirstWords, "'"));
  }
  if (kind != kind_) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " holds keys of kind '", kind, "', but this conversion makes '", kind_,
                     "': use the --keys and --key-bits that the vocabulary was written with"));
  }
  StreamHash hash;
  while (true) {
    hash.Add(line);
    hash.Add("\n");
    CISTERN_ASSIGN_OR_RETURN(found, lines->Next(&line));
    if (!found) return hash.value();
    // Searches from the right: a column name can contain a tab, the numbers cannot.
    const size_t second = line.rfind('\t');
    const size_t first = second == 0 || second == absl::string_view::npos
                             ? absl::string_view::npos
                             : line.rfind('\t', second - 1);
    Key key = 0;
    uint32_t count = 0;
    if (first == absl::string_view::npos ||
        !absl::SimpleAtoi(line.substr(first + 1, second - first - 1), &key) ||
        !absl::SimpleAtoi(line.substr(second + 1), &count)) {
      return lines->DataLoss("is not column<TAB>key<TAB>count");
    }
    columns_[std::string(line.substr(0, first))][key] = count;
  }
}

}  // namespace cistern
