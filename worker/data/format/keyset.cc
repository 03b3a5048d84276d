#include "worker/data/format/keyset.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "common/io/mapped_file.h"
#include "common/io/new_file.h"
#include "worker/data/format/checked_reader.h"
#include "worker/data/format/file_list.h"

namespace cistern::data {
namespace {

constexpr size_t kSamplesPerBlock = 4096;

// The position of a key in the data.
struct Place {
  uint64_t sample = 0;
  size_t input = 0, slot = 0;
};

// Calls visit(key, place) for every key of the selected inputs. Returns the number of samples.
absl::StatusOr<uint64_t> VisitKeys(const KeysetOptions& options,
                                   const std::function<absl::Status(Key, const Place&)>& visit) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<SampleReader> reader, OpenDataSet(options.data));
  const std::vector<uint32_t>& slot_nums = options.data.shape.slot_nums;
  SampleBlock block;
  uint64_t samples = 0;
  while (true) {
    block.Reset(slot_nums.size());
    CISTERN_ASSIGN_OR_RETURN(const size_t got, reader->Read(kSamplesPerBlock, &block));
    if (got == 0) return samples;
    for (size_t input = 0; input < slot_nums.size(); ++input) {
      if (options.input >= 0 && input != static_cast<size_t>(options.input)) continue;
      const SparseColumn& column = block.sparse[input];
      for (size_t i = 0; i + 1 < column.offsets.size(); ++i) {
        for (uint32_t k = column.offsets[i]; k < column.offsets[i + 1]; ++k) {
          CISTERN_RETURN_IF_ERROR(
              visit(column.keys[k], {samples + i / slot_nums[input], input, i % slot_nums[input]}));
        }
      }
    }
    samples += got;
  }
}

constexpr size_t kKeysAtFirst = size_t{1} << 20;

// The keys of a keyset file, and whether each occurs in the data.
using Keyset = absl::flat_hash_map<Key, bool>;

absl::StatusOr<Keyset> ReadKeyset(const std::string& path, bool wide, KeysetSummary* summary) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  const size_t width = wide ? 8 : 4, size = file->bytes().size();
  const Key reserved = wide ? kReservedKey64 : kReservedKey32;
  if (size % width != 0) {
    return WithKind(
        WithOptions(absl::DataLossError(absl::StrCat(
                        path, ": its ", size, " bytes are not a whole number of ", width,
                        "-byte keys: it is cut short, or its keys have another width")),
                    {"key_bits"}),
        ErrorKind::kCutShort);
  }
  Keyset keys;
  // A long file can hold few keys (holes read as key 0), so the table grows with the keys.
  keys.reserve(std::min(size / width, kKeysAtFirst));
  for (size_t at = 0; at < size; at += width) {
    Key key = 0;
    std::memcpy(&key, file->bytes().data() + at, width);
    if (key >= reserved) {
      return WithOptions(absl::DataLossError(absl::StrCat(
                             path, ": key ", at / width, " is ", static_cast<int64_t>(key),
                             ", the reserved key or a negative number: check the key width")),
                         {"key_bits"});
    }
    if (!keys.emplace(key, false).second) ++summary->duplicates;
  }
  summary->in_file = size / width;
  return keys;
}

class KeysetReader : public CheckedReader {
 public:
  KeysetReader(std::unique_ptr<SampleReader> reader, const DataSetOptions& data,
               absl::flat_hash_set<Key> keys)
      : CheckedReader(std::move(reader)), data_(data), keys_(std::move(keys)) {}

 protected:
  std::optional<BadSample> FindBad(const SampleBlock& block, size_t begin) const override {
    std::optional<BadSample> bad;
    for (size_t input = 0; input < block.sparse.size(); ++input) {
      const SparseColumn& column = block.sparse[input];
      const size_t slots = data_.shape.slot_nums[input];
      for (size_t i = begin * slots; i + 1 < column.offsets.size(); ++i) {
        if (bad.has_value() && i / slots >= bad->sample) break;
        for (uint32_t k = column.offsets[i]; k < column.offsets[i + 1]; ++k) {
          if (keys_.contains(column.keys[k])) continue;
          bad = BadSample{i / slots, Refusal(column.keys[k], input, i % slots)};
          break;
        }
      }
    }
    return bad;
  }

 private:
  std::string Refusal(Key key, size_t input, size_t slot) const {
    return absl::StrCat("slot ", slot, " of input ", input, ": key ", key, " is not in the keyset ",
                        absl::StrJoin(data_.keysets, ", "),
                        ": rewrite it from this data (cistern data keyset), or train without it");
  }

  const DataSetOptions data_;
  const absl::flat_hash_set<Key> keys_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SampleReader>> OpenWithKeyset(std::unique_ptr<SampleReader> reader,
                                                             const DataSetOptions& data) {
  absl::flat_hash_set<Key> keys;
  for (const std::string& path : data.keysets) {
    KeysetSummary ignored;
    CISTERN_ASSIGN_OR_RETURN(const Keyset more, ReadKeyset(path, HasWideKeys(data), &ignored));
    for (const auto& [key, used] : more) keys.insert(key);
  }
  return std::make_unique<KeysetReader>(std::move(reader), data, std::move(keys));
}

absl::StatusOr<KeysetSummary> WriteKeyset(FileSystem& files, const KeysetOptions& options,
                                          const std::string& path) {
  CISTERN_RETURN_IF_ERROR(NewFile::Check(path, FilesOfSource(options.data.source)));
  Keyset seen;
  const Key limit = options.wide_keys ? kReservedKey64 : kReservedKey32;
  KeysetSummary summary;
  CISTERN_ASSIGN_OR_RETURN(summary.samples, VisitKeys(options, [&](Key key, const Place& place) {
                             if (key < limit) {
                               seen.emplace(key, true);
                               return absl::OkStatus();
                             }
                             return WithOptions(absl::OutOfRangeError(absl::StrCat(
                                                    "sample ", place.sample, ", slot ", place.slot,
                                                    " of input ", place.input, ": key ", key,
                                                    " does not fit 4 bytes: write 8-byte keys")),
                                                {"key_bits"});
                           }));
  std::vector<Key> keys;
  keys.reserve(seen.size());
  for (const auto& [key, used] : seen) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> file, NewFile::Create(files, path));
  file->WillBeRead();
  for (Key key : keys) {
    CISTERN_RETURN_IF_ERROR(file->Append(
        absl::string_view(reinterpret_cast<const char*>(&key), options.wide_keys ? 8 : 4)));
  }
  CISTERN_RETURN_IF_ERROR(file->Close());
  summary.keys = summary.in_file = keys.size();
  return summary;
}

absl::StatusOr<KeysetSummary> CheckKeyset(const KeysetOptions& options, const std::string& path) {
  KeysetSummary summary;
  CISTERN_ASSIGN_OR_RETURN(Keyset keys, ReadKeyset(path, options.wide_keys, &summary));
  CISTERN_ASSIGN_OR_RETURN(
      summary.samples, VisitKeys(options, [&](Key key, const Place& place) {
        const auto it = keys.find(key);
        if (it == keys.end()) {
          return absl::OutOfRangeError(absl::StrCat(
              path, " lacks key ", key, ", which sample ", place.sample, " of ",
              options.data.source, " has in slot ", place.slot, " of input ", place.input,
              ": rewrite the keyset from this data (cistern data keyset)"));
        }
        summary.keys += !it->second;
        it->second = true;
        return absl::OkStatus();
      }));
  summary.unused = keys.size() - summary.keys;
  return summary;
}

}  // namespace cistern::data
