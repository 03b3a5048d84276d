#include "worker/data/criteo.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/philox.h"
#include "worker/data/line_reader.h"
#include "worker/data/mapped_file.h"
#include "worker/data/output_file.h"
#include "worker/data/output_folder.h"
#include "worker/data/sample_set_writer.h"

namespace cistern {
namespace {

constexpr size_t kDense = 13, kSparse = 26, kFields = 1 + kDense + kSparse;
constexpr uint32_t kFirstId = 2;
constexpr size_t kPartsMost = 512;
constexpr uint64_t kRowsPerBlock = 1024;

// A line, once it is read.
struct Row {
  float label;
  std::array<float, kDense> dense;
  std::array<uint32_t, kSparse> ids;
};
static_assert(sizeof(Row) == 4 * kFields);

// Streams of the random generator.
enum Stream : uint64_t { kPart, kOrder };

// Contiguous ids of a column's values, by first occurrence.
class ColumnIds {
 public:
  uint32_t IdOf(uint64_t value) {
    const auto [it, is_new] = ids_.emplace(value, kFirstId + static_cast<uint32_t>(values_.size()));
    if (is_new) values_.push_back(value);
    return it->second;
  }
  uint64_t size() const { return kFirstId + values_.size(); }

  absl::Status Save(const std::string& path) const {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file, OutputFile::Create(path));
    for (uint64_t value : values_) {
      CISTERN_RETURN_IF_ERROR(file->Append(absl::StrFormat("%08x\n", value)));
    }
    return file->Close();
  }

 private:
  absl::flat_hash_map<uint64_t, uint32_t> ids_;
  std::vector<uint64_t> values_;
};

class Preparation {
 public:
  Preparation(const CriteoOptions& options, const std::function<bool(uint64_t)>& progress)
      : options_(options), progress_(progress), columns_(kSparse) {
    data_.format = options.format;
    data_.check = options.check;
    data_.wide_keys = options.wide_keys;
    data_.float_label_dense = true;
    data_.shape = {1, kDense, {kSparse}, {0}};
  }

  absl::StatusOr<CriteoSummary> Run() {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFolder> out,
                             OutputFolder::Create(options_.out, options_.overwrite));
    CISTERN_ASSIGN_OR_RETURN(rows_folder_, out->Subfolder("rows"));
    CISTERN_RETURN_IF_ERROR(ReadDays());
    CISTERN_ASSIGN_OR_RETURN(const std::string ids, out->Subfolder("ids"));
    for (size_t i = 0; i < kSparse; ++i) {
      summary_.slot_sizes.push_back(columns_[i].size());
      CISTERN_RETURN_IF_ERROR(columns_[i].Save(absl::StrCat(ids, "/cat_", i, ".txt")));
    }
    columns_.clear();
    if (options_.multi_hot.has_value()) {
      CISTERN_ASSIGN_OR_RETURN(MultiHot made,
                               MultiHot::Create(*options_.multi_hot, summary_.slot_sizes));
      multi_hot_ = std::make_unique<MultiHot>(std::move(made));
    }
    std::vector<std::string> train;
    for (size_t part = 0; part < parts_; ++part) train.push_back(PartPath(part));
    CISTERN_RETURN_IF_ERROR(
        WriteSet(*out, "train", train, options_.shuffle, &summary_.train_source));
    CISTERN_RETURN_IF_ERROR(WriteSet(*out, "test", {TestPath()}, false, &summary_.test_source));
    CISTERN_RETURN_IF_ERROR(SaveSizes(*out));
    std::filesystem::remove_all(rows_folder_);
    CISTERN_RETURN_IF_ERROR(out->Publish());
    return summary_;
  }

 private:
  std::string PartPath(size_t part) const { return absl::StrCat(rows_folder_, "/part-", part); }
  std::string TestPath() const { return rows_folder_ + "/test"; }

  // Reads every day: rows of the last into one file, those of the others into parts that are small
  // enough to be shuffled in memory; a row's part is drawn, so that parts, each shuffled, one after
  // the other are a shuffle of all.
  absl::Status ReadDays() {
    uint64_t bytes = 0;
    for (const std::string& day : options_.days) {
      std::error_code error;
      bytes += std::filesystem::file_size(day, error);
      if (error) return absl::InvalidArgumentError(absl::StrCat(day, ": no such file"));
    }
    // A row is never larger than 160 bytes, nor much smaller than its text.
    if (options_.shuffle) {
      parts_ = std::min<uint64_t>(kPartsMost, 1 + 2 * bytes / (options_.memory_mb << 20));
    }
    std::vector<std::unique_ptr<OutputFile>> parts(parts_);
    for (size_t part = 0; part < parts_; ++part) {
      CISTERN_ASSIGN_OR_RETURN(parts[part], OutputFile::Create(PartPath(part)));
    }
    for (size_t day = 0; day + 1 < options_.days.size(); ++day) {
      CISTERN_RETURN_IF_ERROR(ReadDay(options_.days[day], &summary_.train_samples,
                                      &summary_.train_positives, [&](uint64_t row) {
                                        const size_t part =
                                            Philox(options_.seed, row, kPart).word[0] % parts_;
                                        return parts[part].get();
                                      }));
    }
    for (const auto& part : parts) CISTERN_RETURN_IF_ERROR(part->Close());
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> test,
                             OutputFile::Create(TestPath()));
    CISTERN_RETURN_IF_ERROR(ReadDay(options_.days.back(), &summary_.test_samples,
                                    &summary_.test_positives,
                                    [&](uint64_t) { return test.get(); }));
    return test->Close();
  }

  template <typename Target>
  absl::Status ReadDay(const std::string& day, uint64_t* samples, uint64_t* positives,
                       const Target& target) {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<LineReader> lines, LineReader::Open(day));
    absl::string_view line;
    while (true) {
      CISTERN_ASSIGN_OR_RETURN(const bool more, lines->Next(&line));
      if (!more) return absl::OkStatus();
      Row row;
      const absl::Status parsed = Parse(line, &row);
      if (!parsed.ok()) return lines->DataLoss(parsed.message());
      *positives += row.label > 0;
      CISTERN_RETURN_IF_ERROR(
          target((*samples)++)
              ->Append(absl::string_view(reinterpret_cast<const char*>(&row), sizeof(row))));
      CISTERN_RETURN_IF_ERROR(Tick());
    }
  }

  absl::Status Tick() {
    if (++ticks_ % 65536 != 0 || progress_ == nullptr || progress_(ticks_)) return absl::OkStatus();
    return absl::CancelledError("interrupted: nothing was written");
  }

  absl::Status Parse(absl::string_view line, Row* row) {
    size_t place = 0;
    for (size_t field = 0; field < kFields; ++field) {
      if (place > line.size()) {
        return absl::DataLossError(absl::StrCat("has ", field, " fields; a row of Criteo has ",
                                                kFields, ", separated by tabs"));
      }
      const size_t end = std::min(line.find('\t', place), line.size());
      CISTERN_RETURN_IF_ERROR(ParseField(line.substr(place, end - place), field, row));
      place = end + 1;
    }
    if (place <= line.size()) {
      return absl::DataLossError(
          absl::StrCat("has more fields than the ", kFields, " of a row of Criteo"));
    }
    return absl::OkStatus();
  }

  absl::Status ParseField(absl::string_view text, size_t field, Row* row) {
    if (field > kDense) {
      uint64_t value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
      if (!text.empty() && (error != std::errc() || end != text.data() + text.size())) {
        return absl::DataLossError(absl::StrCat(
            "column C", field - kDense, " '", text.substr(0, 40), "' is not a hexadecimal number"));
      }
      row->ids[field - 1 - kDense] = columns_[field - 1 - kDense].IdOf(value);
      return absl::OkStatus();
    }
    int64_t number = 0;
    if (!text.empty() && !absl::SimpleAtoi(text, &number)) {
      return absl::DataLossError(
          absl::StrCat(field == 0 ? std::string("the label") : absl::StrCat("column I", field),
                       " '", text.substr(0, 40), "' is not a whole number"));
    }
    if (field == 0) {
      row->label = static_cast<float>(number);
      return absl::OkStatus();
    }
    summary_.clipped += number < -2;
    row->dense[field - 1] =
        static_cast<float>(std::log(static_cast<double>(std::max<int64_t>(number, -2)) + 3));
    return absl::OkStatus();
  }

  // Writes the rows of `parts` as a data set in a subfolder.
  absl::Status WriteSet(OutputFolder& out, const std::string& name,
                        const std::vector<std::string>& parts, bool shuffle, std::string* source) {
    CISTERN_ASSIGN_OR_RETURN(const std::string folder, out.Subfolder(name));
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<SampleSetWriter> writer,
                             CreateSampleSetWriter(folder, data_, options_.samples_per_file));
    for (size_t part = 0; part < parts.size(); ++part) {
      CISTERN_RETURN_IF_ERROR(WritePart(parts[part], part, shuffle, writer.get()));
      std::filesystem::remove(parts[part]);
    }
    CISTERN_RETURN_IF_ERROR(writer->Close());
    *source = absl::StrCat(options_.out, "/", name, "/", writer->source());
    return absl::OkStatus();
  }

  absl::Status WritePart(const std::string& path, size_t part, bool shuffle,
                         SampleSetWriter* writer) {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(path));
    const uint64_t count = file->bytes().size() / sizeof(Row);
    std::vector<uint32_t> order(shuffle ? count : 0);
    std::iota(order.begin(), order.end(), 0);
    for (uint64_t i = order.size(); i > 1; --i) {
      const PhiloxBlock bits = Philox(options_.seed, i, kOrder + (uint64_t{part} << 8));
      std::swap(order[i - 1], order[(uint64_t{bits.word[0]} << 32 | bits.word[1]) % i]);
    }
    SampleBlock block;
    for (uint64_t done = 0; done < count;) {
      block.Reset(1);
      for (; done < count && block.size < kRowsPerBlock; ++done) {
        Row row;
        std::memcpy(&row, file->bytes().data() + (shuffle ? order[done] : done) * sizeof(Row),
                    sizeof(Row));
        AppendRow(row, &block);
      }
      CISTERN_RETURN_IF_ERROR(writer->Append(block));
    }
    return absl::OkStatus();
  }

  void AppendRow(const Row& row, SampleBlock* block) {
    block->label.push_back(row.label);
    block->dense.insert(block->dense.end(), row.dense.begin(), row.dense.end());
    SparseColumn& column = block->sparse[0];
    // In Norm files slots share no keys; in the others the reader sees to it.
    Key offset = 0;
    for (size_t i = 0; i < kSparse; ++i) {
      const size_t first = column.keys.size();
      if (multi_hot_ != nullptr) {
        multi_hot_->Append(i, row.ids[i], &column.keys);
      } else {
        column.keys.push_back(row.ids[i]);
      }
      for (size_t k = first; k < column.keys.size(); ++k) column.keys[k] += offset;
      column.offsets.push_back(static_cast<uint32_t>(column.keys.size()));
      if (options_.format == DataFormat::kNorm) offset += summary_.slot_sizes[i];
    }
    ++block->size;
  }

  absl::Status SaveSizes(OutputFolder& out) const {
    CISTERN_ASSIGN_OR_RETURN(const std::string folder, out.Subfolder(""));
    if (multi_hot_ != nullptr && options_.multi_hot->count_frequencies) {
      CISTERN_RETURN_IF_ERROR(multi_hot_->SaveFrequencies(folder + "/frequencies.tsv"));
    }
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file,
                             OutputFile::Create(folder + "/slot_sizes.json"));
    CISTERN_RETURN_IF_ERROR(
        file->Append(absl::StrCat("[", absl::StrJoin(summary_.slot_sizes, ", "), "]\n")));
    return file->Close();
  }

  const CriteoOptions& options_;
  const std::function<bool(uint64_t)>& progress_;
  std::vector<ColumnIds> columns_;
  DataSetOptions data_;
  std::string rows_folder_;
  size_t parts_ = 1;
  uint64_t ticks_ = 0;
  std::unique_ptr<MultiHot> multi_hot_;
  CriteoSummary summary_;
};

}  // namespace

absl::StatusOr<CriteoSummary> PrepareCriteo(const CriteoOptions& options,
                                            const std::function<bool(uint64_t rows)>& progress) {
  if (options.days.size() < 2) {
    return absl::InvalidArgumentError(
        "name at least two files: days to train with, and one more, the last, to test with");
  }
  if (options.multi_hot.has_value() && options.format != DataFormat::kNorm) {
    return absl::InvalidArgumentError(absl::StrCat("a slot of a ", FormatName(options.format),
                                                   " file holds one key; multi-hot needs Norm"));
  }
  if (options.memory_mb == 0 || options.samples_per_file == 0) {
    return absl::InvalidArgumentError("memory and samples of a file are at least 1");
  }
  return Preparation(options, progress).Run();
}

}  // namespace cistern
