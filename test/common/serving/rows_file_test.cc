// Rows for serving: every key is found, absent keys are not, and a damaged file is refused.
#include "common/serving/rows_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "common/base/hash.h"

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
        (found == table.end() ? encoder.AddRemoved(key) : encoder.Add(key, found->second.data()))
            .ok());
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
  const std::string bytes = Encode({RowPrecision::kFloat32, 2}, RandomTable(60, 2, 3), {~Key{0}});
  ASSERT_TRUE(RowsView::Parse(bytes)->Verify().ok());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const auto view = RowsView::Parse(flipped);
    EXPECT_FALSE(view.ok() && view->Verify().ok()) << bit;
    if (!view.ok()) continue;
    RowsView::State state = RowsView::kUnknown;  // a lookup stays within the file
    float out[2];
    const Key key = 5;
    view->Lookup(absl::MakeConstSpan(&key, 1), &state, out, 2);
  }
}

TEST(RowsFile, ATruncatedFileIsRefused) {
  const std::string bytes = Encode({RowPrecision::kFloat32, 2}, RandomTable(30, 2, 3));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(RowsView::Parse(bytes.substr(0, size)).ok()) << size;
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
