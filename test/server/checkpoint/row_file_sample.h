// A small row file with every kind of section, for the tests that write and read it: server 1 of 2
// with 4 shards, an embedding table, a ctr table with and without embedx, a dense table.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/hash.h"
#include "server/checkpoint/row_file.h"
#include "server/checkpoint/row_file_footer.h"

namespace cistern::server {

using SparseRow = std::tuple<Key, std::vector<float>, bool>;  // value: full_floats, padded with 0

inline v1::Schema SampleSchema() {
  v1::Schema schema;
  v1::TableSpec* deep = schema.add_tables();
  deep->set_name("deep");
  deep->set_dim(3);
  deep->mutable_rule()->set_kind(v1::UpdateRule::ADAGRAD);
  deep->mutable_rule()->set_epsilon(1e-7f);
  v1::TableSpec* ctr = schema.add_tables();
  ctr->set_name("ctr");
  ctr->set_accessor(v1::TableSpec::CTR);
  ctr->set_dim(2);
  ctr->mutable_ctr()->set_embedx_threshold(10);
  v1::DenseTableSpec* dense = schema.add_dense_tables();
  dense->set_name("dense");
  dense->set_rows(9);
  for (const std::string& column : {std::string("w"), std::string("m")}) dense->add_columns(column);
  return schema;
}

inline ValueLayout SampleLayout(TableId table) {
  return ValueLayout::Create(SampleSchema().tables(static_cast<int>(table))).value();
}

inline RowFileHeader SampleHeader() {
  RowFileHeader header;
  header.cluster_id = 0x1122334455667788;
  header.schema_hash = 0x99aabbccddeeff00;
  header.server = 1;
  header.server_num = 2;
  header.shard_num = 4;
  header.commit = 7;
  header.term = 3;
  return header;
}

inline SparseRow SampleRow(const ValueLayout& layout, Key key) {
  const bool has_embedx = !layout.embedx_is_optional() || key % 8 == 1;
  std::vector<float> value(layout.full_floats());
  for (uint32_t i = 0; i < layout.floats(has_embedx); ++i) {
    value[i] = static_cast<float>(key % 1000) + 0.25f * static_cast<float>(i);
  }
  return SparseRow(key, value, has_embedx);
}

inline std::vector<SparseRow> SampleRows(const ValueLayout& layout, ShardIndex shard,
                                         uint64_t count) {
  std::vector<SparseRow> rows;
  for (uint64_t i = 0; i < count; ++i) rows.push_back(SampleRow(layout, shard + 4 * i));
  return rows;
}

inline absl::Status WriteSparse(RowFileWriter& writer, TableId table, ShardIndex shard,
                                const ValueLayout& layout, const std::vector<SparseRow>& rows,
                                uint64_t total_rows) {
  RowSection section;
  section.table = table;
  section.shard = shard;
  section.stride = layout.full_floats();
  CISTERN_RETURN_IF_ERROR(writer.BeginSection(section));
  RowBlockBuilder builder(&layout);
  for (const auto& [key, value, has_embedx] : rows) {
    builder.Add(key, value.data(), has_embedx);
    CISTERN_RETURN_IF_ERROR(writer.Append(builder.Take(false)));
  }
  CISTERN_RETURN_IF_ERROR(writer.Append(builder.Take(true)));
  return writer.EndSection(total_rows, 1000 + table * 10 + shard);
}

inline absl::Status WriteDense(RowFileWriter& writer, TableId table, uint64_t begin,
                               uint32_t columns, const std::vector<float>& cells,
                               uint64_t total_rows) {
  RowSection section;
  section.dense = true;
  section.table = table;
  section.stride = columns;
  section.begin = begin;
  CISTERN_RETURN_IF_ERROR(writer.BeginSection(section));
  RowBlockBuilder builder(nullptr, columns);
  for (size_t i = 0; i < cells.size(); i += columns) builder.AddDense(&cells[i]);
  CISTERN_RETURN_IF_ERROR(writer.Append(builder.Take(true)));
  return writer.EndSection(total_rows, 5);
}

inline std::vector<float> SampleCells() {
  return {1, 2, 3, 4, 5, 6, 7, -0.5f};
}

// Shards 1 and 3 of both sparse tables, one of them empty; rows 5 .. 8 of the dense table.
inline absl::StatusOr<v1::RowFile> WriteSample(FileSystem& files, const std::string& folder,
                                               const std::string& name,
                                               const RowFileHeader& header = SampleHeader()) {
  CISTERN_ASSIGN_OR_RETURN(const auto writer, RowFileWriter::Create(files, folder, name, header));
  for (TableId table = 0; table < 2; ++table) {
    const ValueLayout layout = SampleLayout(table);
    for (const ShardIndex shard : {1u, 3u}) {
      const uint64_t count = table == 0 && shard == 3 ? 0 : 5 + table;
      CISTERN_RETURN_IF_ERROR(WriteSparse(*writer, table, shard, layout,
                                          SampleRows(layout, shard, count),
                                          header.base ? count : 100));
    }
  }
  CISTERN_RETURN_IF_ERROR(WriteDense(*writer, 0, 5, 2, SampleCells(), 4));
  return writer->Finish();
}

inline absl::StatusOr<std::vector<SparseRow>> ReadSparseRows(const RowFileReader& reader,
                                                             const RowSection& section,
                                                             const ValueLayout& layout) {
  std::vector<SparseRow> rows;
  CISTERN_RETURN_IF_ERROR(
      reader.ReadSparse(section, layout, [&](const ValueBlock& block) -> absl::Status {
        for (size_t i = 0; i < block.keys.size(); ++i) {
          const float* value = block.values + i * layout.full_floats();
          rows.emplace_back(block.keys[i], std::vector<float>(value, value + layout.full_floats()),
                            block.has_embedx[i] != 0);
        }
        return absl::OkStatus();
      }));
  return rows;
}

// Reads every row, each section with the layout of its table, as a recovering server does.
inline absl::Status ReadEverything(FileSystem& files, const std::string& folder,
                                   const v1::RowFile& expected) {
  CISTERN_ASSIGN_OR_RETURN(const auto reader, RowFileReader::Open(files, folder, expected));
  for (const RowSection& section : reader->sections()) {
    std::vector<float> cells;
    const absl::Status read =
        section.dense ? reader->ReadDense(section, &cells)
                      : ReadSparseRows(*reader, section, SampleLayout(section.table % 2)).status();
    CISTERN_RETURN_IF_ERROR(read);
  }
  return reader->Verify();
}

// The parts of a row file, which a test may change and reassemble with matching hashes.
struct RowFileParts {
  RowFileFooter footer;
  std::vector<std::string> blocks;
  std::vector<std::string> filters;  // of an indexed file, by section
};

inline RowFileParts TakeApart(const std::string& bytes) {
  const absl::string_view end =
      absl::string_view(bytes).substr(bytes.size() - kRowFileTrailerBytes);
  const RowFileTrailer trailer = DecodeRowFileTrailer(end, bytes.size()).value();
  RowFileParts parts;
  parts.footer = DecodeRowFileFooter(
                     absl::string_view(bytes).substr(trailer.footer_offset, trailer.footer_bytes),
                     trailer.footer_offset)
                     .value();
  size_t offset = kRowFileHeaderBytes;
  for (const uint64_t size : parts.footer.block_bytes) {
    parts.blocks.push_back(bytes.substr(offset, size));
    offset += size;
  }
  for (const FilterPlace& filter : parts.footer.filters) {
    parts.filters.push_back(bytes.substr(filter.offset, filter.bytes));
  }
  return parts;
}

// The blocks, followed by an arbitrary footer.
inline std::string PutTogether(const RowFileParts& parts, const std::string& footer) {
  std::string bytes = EncodeRowFileHeader(parts.footer.header);
  for (const std::string& block : parts.blocks) bytes += block;
  for (const std::string& filter : parts.filters) bytes += filter;
  const RowFileTrailer trailer{bytes.size(), footer.size(), HashBytes(footer)};
  return bytes + footer + EncodeRowFileTrailer(trailer);
}

inline std::string PutTogether(RowFileParts parts) {
  parts.footer.block_hashes.clear();
  parts.footer.block_bytes.clear();
  for (const std::string& block : parts.blocks) {
    parts.footer.block_hashes.push_back(HashBytes(block));
    parts.footer.block_bytes.push_back(block.size());
  }
  parts.footer.filters.clear();
  for (const std::string& filter : parts.filters) {
    parts.footer.filters.push_back({0, filter.size(), HashBytes(filter)});
  }
  return PutTogether(parts, EncodeRowFileFooter(parts.footer));
}

}  // namespace cistern::server
