// Specs, tables and keys shared by the tests of the servers.
#pragma once

#include <memory>
#include <vector>

#include "common/base/check.h"
#include "common/value/shard_map.h"
#include "server/table/sparse_table.h"

namespace cistern::server {

// 12 cells per row without state; initial weights uniform in [-0.1, 0.1).
inline v1::TableSpec EmbeddingSpec(uint32_t dim = 12, const char* name = "deep") {
  v1::TableSpec spec;
  spec.set_name(name);
  spec.set_accessor(v1::TableSpec::EMBEDDING);
  spec.set_dim(dim);
  spec.mutable_rule()->set_kind(v1::UpdateRule::SGD);
  spec.mutable_initializer()->set_kind(v1::Initializer::UNIFORM);
  spec.mutable_initializer()->set_range(0.1f);
  spec.set_seed(7);
  return spec;
}

// The layout of spec/003 section 3.2: 11 cells without embedx, 12 + dim with embedx.
inline v1::TableSpec CtrSpec(uint32_t dim = 8, const char* name = "ctr") {
  v1::TableSpec spec = EmbeddingSpec(dim, name);
  spec.set_accessor(v1::TableSpec::CTR);
  spec.mutable_rule()->set_kind(v1::UpdateRule::ADAGRAD_SHARED);
  spec.mutable_rule()->set_initial_g2sum(3.0f);
  spec.mutable_ctr()->set_nonclk_coeff(0.1f);
  spec.mutable_ctr()->set_click_coeff(1.0f);
  spec.mutable_ctr()->set_embedx_threshold(10.0f);
  return spec;
}

inline ShardMap Map(uint32_t shard_num, uint32_t server_num) {
  auto map = ShardMap::Create(shard_num, server_num);
  CISTERN_CHECK(map.ok());
  return *map;
}

inline std::unique_ptr<SparseTable> Table(const v1::TableSpec& spec, const ShardMap& map,
                                          uint32_t rank = 0) {
  auto table = SparseTable::Create(spec, map, rank);
  CISTERN_CHECK(table.ok());
  return std::move(*table);
}

// Rows to write, owned.
struct Rows {
  std::vector<Key> keys;
  std::vector<float> values;
  std::vector<uint8_t> has_embedx;

  void Add(Key key, const std::vector<float>& value, bool with_embedx) {
    keys.push_back(key);
    values.insert(values.end(), value.begin(), value.end());
    has_embedx.push_back(with_embedx);
  }
  ValueBlock block() const { return {keys, values.data(), has_embedx.data()}; }
};

// A value unique to (key, version) and exact in a float; the cells of an absent embedx are 0.
inline std::vector<float> TestValue(const ValueLayout& layout, Key key, int version,
                                    bool has_embedx) {
  std::vector<float> value(layout.full_floats(), 0.0f);
  for (uint32_t i = 0; i < layout.floats(has_embedx); ++i) {
    value[i] = static_cast<float>(key % 1000003 + 1) + static_cast<float>(version) * 0.125f +
               static_cast<float>(i) * 0.015625f;
  }
  return value;
}

}  // namespace cistern::server
