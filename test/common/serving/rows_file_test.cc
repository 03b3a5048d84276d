// Rows for serving: every key is found, absent keys are not, and a damaged file is refused.
#include "common/serving/rows_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "common/base/hash.h"
#include "common/serving/merge_rows.h"

namespace cistern {
namespace {

using Weights = std::vector<float>;
using Table = std::map<Key, Weights>;

std::string Encode(const RowsShape& shape, const Table& table,
                   const std::vector<Key>& removed = {}) {
  std::map<uint64_t, Key> order;
  for (const auto& [key, weights] : table) order[MixKey(key)] = key;
  for (const Key key : removed) order[MixKey(key)] = key;
  std::vector<uint64_t> mixed;
  for (const auto& [hash, key] : order) mixed.push_back(hash);
  std::string bytes;
  RowsEncoder encoder(shape, [&](absl::string_view more) {
    bytes.append(more.data(), more.size());
    return absl::OkStatus();
  });
  EXPECT_TRUE(encoder.Begin(mixed).ok());
  for (const auto& [hash, key] : order) {
    const auto found = table.find(key);
    EXPECT_TRUE(
        (found == table.end() ? encoder.AddRemoved() : encoder.Add(found->second.data())).ok());
  }
  EXPECT_TRUE(encoder.End().ok());
  EXPECT_EQ(encoder.bytes(), bytes.size());
  EXPECT_EQ(encoder.file_xxh3(), HashBytes(bytes));
  return bytes;
}

Table RandomTable(size_t rows, uint32_t dim, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  Table table;
  while (table.size() < rows) {
    const Key key = table.size() % 2 == 0 ? table.size() : random();
    Weights& weights = table[key];
    weights.resize(dim);
    for (float& w : weights) w = normal(random);
  }
  return table;
}

// Looks keys up one after another and in one call; both must agree.
Table ReadAll(const RowsView& view, const std::vector<Key>& keys) {
  const size_t dim = view.shape().dim;
  std::vector<float> out(keys.size() * dim, -7.0f);
  std::vector<RowsView::State> state(keys.size(), RowsView::kUnknown);
  view.Lookup(keys, state.data(), out.data(), dim);
  Table table;
  for (size_t i = 0; i < keys.size(); ++i) {
    RowsView::State one = RowsView::kUnknown;
    std::vector<float> alone(dim, -7.0f);
    view.Lookup(absl::MakeConstSpan(&keys[i], 1), &one, alone.data(), dim);
    EXPECT_EQ(one, state[i]);
    EXPECT_EQ(alone, Weights(out.begin() + i * dim, out.begin() + (i + 1) * dim));
    if (one == RowsView::kFound) table[keys[i]] = alone;
  }
  return table;
}

std::vector<Key> KeysOf(const Table& table) {
  std::vector<Key> keys;
  for (const auto& [key, weights] : table) keys.push_back(key);
  return keys;
}

TEST(RowsFile, FindsEveryKeyAndNoOther) {
  for (const size_t rows : {0, 1, 23, 57, 1000, 20000}) {
    const Table table = RandomTable(rows, 5, rows);
    const std::string bytes = Encode({RowPrecision::kFloat32, 5}, table);
    const RowsView view = RowsView::Parse(bytes).value();
    EXPECT_TRUE(view.Verify().ok());
    EXPECT_EQ(view.rows(), rows);
    EXPECT_EQ(ReadAll(view, KeysOf(table)), table);
    std::mt19937_64 random(rows + 1);
    std::vector<Key> absent;
    while (absent.size() < 2000) {
      const Key key = random();
      if (table.count(key) == 0) absent.push_back(key);
    }
    EXPECT_TRUE(ReadAll(view, absent).empty());
  }
}

// The packed format does not store whole keys. Weights that are multiples of a row's step, which is
// a power of two, are read back as they were.
Table RandomSteps(size_t rows, uint32_t dim, uint64_t seed) {
  std::mt19937_64 random(seed);
  Table table;
  while (table.size() < rows) {
    Weights& weights = table[table.size() % 2 == 0 ? table.size() : random()];
    for (uint32_t i = 0; i < dim; ++i) weights.push_back(static_cast<float>(random() % 256) / 8);
    weights[0] = 0;
    weights.back() = 255.0f / 8;
  }
  return table;
}

TEST(PackedRowsFile, FindsEveryKeyAndNoOther) {
  for (const size_t rows : {0, 1, 35, 57, 1000, 50000}) {
    const Table table = RandomSteps(rows, 5, rows);
    const std::string bytes = Encode({RowPrecision::kInt8, 5}, table);
    const RowsView view = RowsView::Parse(bytes).value();
    EXPECT_TRUE(view.Verify().ok());
    EXPECT_EQ(view.rows(), rows);
    EXPECT_EQ(ReadAll(view, KeysOf(table)), table);
    std::set<Key> listed;
    for (RowsView::Cursor row(view); !row.done(); row.Next()) listed.insert(UnmixKey(row.mixed()));
    const std::vector<Key> keys = KeysOf(table);
    EXPECT_EQ(listed, std::set<Key>(keys.begin(), keys.end()));
    // Keys that differ from one of the table in one bit of the mixed key.
    std::vector<Key> absent;
    for (size_t i = 0; i < keys.size() && absent.size() < 20000; ++i) {
      const Key key = UnmixKey(MixKey(keys[i]) ^ uint64_t{1} << (i % 64));
      if (table.count(key) == 0) absent.push_back(key);
    }
    EXPECT_TRUE(ReadAll(view, absent).empty());
  }
}

// A row of a group that is large on purpose has its tag elsewhere.
TEST(PackedRowsFile, FindsRowsOfLargeGroups) {
  Table table = RandomSteps(100, 2, 3);
  for (uint64_t i = 0; i < 500; ++i) {
    table[UnmixKey(uint64_t{1} << 40 | i << 3)] = table[UnmixKey(~(i << 20))] = {0, 255.0f / 8};
  }
  const std::vector<Key> removed = {UnmixKey(uint64_t{1} << 40 | 4), UnmixKey(5)};
  const std::string bytes = Encode({RowPrecision::kInt8, 2}, table, removed);
  const RowsView view = RowsView::Parse(bytes).value();
  EXPECT_TRUE(view.Verify().ok());
  EXPECT_EQ(ReadAll(view, KeysOf(table)), table);
  std::vector<RowsView::State> states(2, RowsView::kUnknown);
  float out[4];
  view.Lookup(removed, states.data(), out, 2);
  EXPECT_EQ(states, std::vector<RowsView::State>(2, RowsView::kRemoved));
  EXPECT_TRUE(ReadAll(view, {UnmixKey(1), UnmixKey(uint64_t{1} << 40 | 7)}).empty());
}

// Of rows of 16 float32 weights, with 8 bytes of key and 2.67 of index, the reference asks for
// 0.35.
TEST(PackedRowsFile, TakesLittleMoreThanAThirdOfFloat32) {
  const size_t rows = 10'000'000;
  const RowsLayout wide = RowsLayout::ForWriting({RowPrecision::kFloat32, 16}, rows);
  const RowsLayout packed = RowsLayout::ForWriting({RowPrecision::kInt8, 16}, rows);
  EXPECT_EQ(packed.row_bytes, 5u + 4 + 16);
  const auto bytes = [](const RowsLayout& layout) {
    return static_cast<double>(layout.groups * 64 + rows * layout.row_bytes);
  };
  EXPECT_LT(bytes(packed) / bytes(wide), 0.36);
}

// Files of int8 rows that versions before the packed format have written, byte by byte.
std::string PlainInt8(const Table& table) {
  std::map<uint64_t, Key> order;
  for (const auto& [key, weights] : table) order[MixKey(key)] = key;
  std::string group(64, '\0'), rows;
  group[7] = static_cast<char>(table.size());
  size_t i = 0;
  for (const auto& [mixed, key] : order) {
    group[8 + i++] = static_cast<char>(mixed & 255);
    rows.append(reinterpret_cast<const char*>(&key), 8);
    rows += std::string("\x00\x30\x00\x00", 4);  // float16: 1/8 and 0
    for (const float w : table.at(key)) rows += static_cast<char>(static_cast<int>(w * 8));
    rows.resize((rows.size() + 7) / 8 * 8);
  }
  const std::string content = group + rows;
  std::string footer = "CSTNROWS";
  const auto add = [&](uint64_t x, size_t bytes) {
    footer.append(reinterpret_cast<const char*>(&x), bytes);
  };
  add(1, 4);
  add(3, 4);
  add(table.size(), 8);
  add(1, 8);
  add(table.begin()->second.size(), 4);
  add(0, 4);
  add(0, 8);
  add(HashBytes(content), 8);
  add(HashBytes(footer), 8);
  return content + footer;
}

TEST(PackedRowsFile, PlainFilesStillOpenAndMerge) {
  const Table old = RandomSteps(20, 3, 1);
  Table changes = RandomSteps(10, 3, 2), all = changes;
  all.insert(old.begin(), old.end());
  const std::string plain = PlainInt8(old), packed = Encode({RowPrecision::kInt8, 3}, changes);
  const absl::StatusOr<RowsView> base = RowsView::Parse(plain);
  ASSERT_TRUE(base.ok()) << base.status();
  EXPECT_TRUE(base->Verify().ok());
  EXPECT_EQ(ReadAll(*base, KeysOf(old)), old);
  const std::string again = Encode({RowPrecision::kInt8, 3}, old);
  EXPECT_EQ(RowsView::Parse(again)->Digest(), base->Digest());
  const RowsView above = RowsView::Parse(packed).value();
  std::string merged;
  const ByteSink append = [&](absl::string_view more) {
    merged.append(more.data(), more.size());
    return absl::OkStatus();
  };
  RowsEncoder encoder({RowPrecision::kInt8, 3}, append);
  const std::vector<const RowsView*> layers = {&*base, &above};
  ASSERT_TRUE(MergeRows(layers, /*keep_removed=*/false, &encoder).ok());
  EXPECT_EQ(merged, Encode({RowPrecision::kInt8, 3}, all));
}

// Keys whose mixed values share their high bits belong to one group. Somebody may choose them so.
TEST(RowsFile, FindsRowsOfALargeGroup) {
  Table table;
  for (uint64_t i = 0; i < 500; ++i) table[UnmixKey(uint64_t{1} << 40 | i << 20)] = {1.0f * i};
  const std::string bytes = Encode({RowPrecision::kFloat32, 1}, table);
  const RowsView view = RowsView::Parse(bytes).value();
  EXPECT_TRUE(view.Verify().ok());
  EXPECT_EQ(ReadAll(view, KeysOf(table)), table);
  EXPECT_TRUE(ReadAll(view, {UnmixKey(1), UnmixKey(uint64_t{1} << 40 | 7)}).empty());
  EXPECT_LE(bytes.size(), 500 * 16 + 500 / 24 * 64 + 128);
}

// The bounds follow from the formats: 11 and 8 bits of significand; 255 steps over the range of a
// row, with a scale and an offset that are rounded to 11 bits.
TEST(RowsFile, QuantizesWithinTheStepOfItsFormat) {
  const Table table = RandomTable(3000, 16, 7);
  for (const RowPrecision precision :
       {RowPrecision::kFloat16, RowPrecision::kBfloat16, RowPrecision::kInt8}) {
    const std::string bytes = Encode({precision, 16}, table);
    const RowsView view = RowsView::Parse(bytes).value();
    for (const auto& [key, read] : ReadAll(view, KeysOf(table))) {
      const Weights& written = table.at(key);
      const auto [least, most] = std::minmax_element(written.begin(), written.end());
      for (size_t i = 0; i < written.size(); ++i) {
        double bound = std::abs(written[i]) * std::ldexp(1, -11) + 1e-7;
        if (precision == RowPrecision::kBfloat16) bound = std::abs(written[i]) * std::ldexp(1, -8);
        if (precision == RowPrecision::kInt8) {
          const double step = (*most - *least) / 255.0 * (1 + std::ldexp(1, -10));
          bound = step / 2 + std::ldexp(std::abs(*least), -11) + 255 * step * std::ldexp(1, -11);
        }
        EXPECT_LE(std::abs(written[i] - read[i]), bound) << NameOf(precision);
      }
    }
  }
  EXPECT_EQ(RowBytes(RowPrecision::kInt8, 16), 32u);
  EXPECT_EQ(RowBytes(RowPrecision::kFloat32, 16), 72u);
}

// Rows of 3 float16 weights end in padding, which must not be left over from other memory.
TEST(RowsFile, EqualRowsGiveEqualBytes) {
  const Table table = RandomTable(1000, 3, 9);
  EXPECT_EQ(Encode({RowPrecision::kFloat16, 3}, table), Encode({RowPrecision::kFloat16, 3}, table));
}

TEST(RowsFile, AnyFlippedBitIsNoticed) {
  Table rows = RandomTable(60, 2, 3);
  for (uint64_t i = 0; i < 70; ++i) rows[UnmixKey(i << 20)] = {1, 2};  // a large group
  for (const RowPrecision precision : {RowPrecision::kFloat32, RowPrecision::kInt8}) {
    const std::string bytes = Encode({precision, 2}, rows, {~Key{0}});
    ASSERT_TRUE(RowsView::Parse(bytes)->Verify().ok());
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      std::string flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      const auto view = RowsView::Parse(flipped);
      EXPECT_FALSE(view.ok() && view->Verify().ok()) << bit;
      if (!view.ok()) continue;
      // What is read stays within the file.
      std::vector<RowsView::State> states(rows.size(), RowsView::kUnknown);
      std::vector<float> out(2 * rows.size());
      view->Lookup(KeysOf(rows), states.data(), out.data(), 2);
      view->Digest();
      view->VerifyGroups().IgnoreError();
    }
  }
}

TEST(RowsFile, ATruncatedFileIsRefused) {
  for (const RowPrecision precision : {RowPrecision::kFloat32, RowPrecision::kInt8}) {
    const std::string bytes = Encode({precision, 2}, RandomTable(30, 2, 3));
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(RowsView::Parse(bytes.substr(0, size)).ok()) << size;
    }
  }
}

// The reference is a map to which the layers are applied in order.
TEST(RowsFile, MergesTheNewestRowOfEachKey) {
  std::mt19937_64 random(5);
  Table all;
  std::vector<std::string> files;
  for (int layer = 0; layer < 4; ++layer) {
    Table changed;
    std::vector<Key> removed;
    for (int i = 0; i < 300; ++i) {
      const Key key = random() % 800;
      const Weights weights = {1.0f * layer, 1.0f * i};
      changed[key] = all[key] = weights;
    }
    for (Key key = 0; layer > 0 && key < 800; key += 7) {
      if (changed.count(key) != 0) continue;
      removed.push_back(key);
      all.erase(key);
    }
    files.push_back(Encode({RowPrecision::kFloat32, 2}, changed, removed));
  }
  std::vector<RowsView> views;
  for (const std::string& file : files) views.push_back(RowsView::Parse(file).value());
  std::vector<const RowsView*> layers;
  for (const RowsView& view : views) layers.push_back(&view);
  std::string merged;
  RowsEncoder encoder({RowPrecision::kFloat32, 2}, [&](absl::string_view more) {
    merged.append(more.data(), more.size());
    return absl::OkStatus();
  });
  ASSERT_TRUE(MergeRows(layers, /*keep_removed=*/false, &encoder).ok());
  EXPECT_EQ(merged, Encode({RowPrecision::kFloat32, 2}, all));
  EXPECT_EQ(encoder.digest(), RowsView::Parse(merged)->Digest());
}

}  // namespace
}  // namespace cistern
