#include "worker/data/recipe/vocabulary.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/stream_hash.h"
#include "common/io/new_file.h"
#include "worker/data/format/line_reader.h"

namespace cistern::data {
namespace {

constexpr char kFirstWords[] = "cistern vocabulary 1 ";

double SumOf(const Vocabulary::Counts& counts) {
  double sum = 0;
  for (const auto& [key, count] : counts) sum += count;
  return sum;
}

}  // namespace

void Vocabulary::Keep(uint64_t min_count, Vocabulary* removed) {
  for (auto& [name, counts] : columns_) {
    Counts* const others = removed == nullptr ? nullptr : removed->Column(name);
    absl::erase_if(counts, [&](const auto& entry) {
      const bool is_rare = entry.second < min_count;
      if (is_rare && others != nullptr) others->insert(entry);
      return is_rare;
    });
  }
}

void Vocabulary::Add(const Vocabulary& other) {
  for (const auto& [column, counts] : other.columns()) {
    Counts& sum = *Column(column);
    for (const auto& [key, count] : counts) sum[key] += count;
  }
}

std::vector<GrownColumn> Vocabulary::Grow(const Vocabulary& counted, const Vocabulary& earlier,
                                          uint64_t min_count, Vocabulary* rare) {
  std::vector<GrownColumn> grown;
  for (const auto& [column, counts] : counted.columns()) {
    Counts &known = *Column(column), &others = *rare->Column(column);
    const Counts& before = earlier.Of(column);
    GrownColumn& found = grown.emplace_back();
    found.column = column;
    const double was_rare = SumOf(before), was_known = SumOf(known);
    if (was_rare > 0) found.rare_before = was_rare / (was_rare + was_known);
    for (const auto& [key, count] : counts) {
      found.values += count;
      if (known.contains(key)) continue;
      found.unknown += count;
      const auto was = before.find(key);
      const uint32_t total = count + (was == before.end() ? 0 : was->second);
      if (total >= min_count) {
        known[key] = total;
        ++found.keys;
      } else {
        others[key] = count;
      }
    }
  }
  return grown;
}

uint64_t Vocabulary::LeastCount() const {
  std::optional<uint32_t> least;
  for (const auto& [name, counts] : columns_) {
    for (const auto& [key, count] : counts) least = std::min(least.value_or(count), count);
  }
  return least.value_or(0);
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
    return WithOptions(absl::InvalidArgumentError(absl::StrCat(
                           path, " holds keys of kind '", kind, "', but this conversion makes '",
                           kind_, "': use the kind of keys that the vocabulary was written with")),
                       {"keys", "key_bits"});
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

}  // namespace cistern::data
