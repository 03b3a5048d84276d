// Integer types for keys, rows, shards, tables, passes and terms (ARCHITECTURE.md, "Words").
#pragma once

#include <cstdint>

namespace cistern {

using Key = uint64_t;         // id of a sparse feature (feasign)
using Row = uint32_t;         // index into the pass table
using ShardIndex = uint32_t;  // 0 .. shard_num - 1, over the whole fleet
using TableId = uint32_t;     // position of a table in the schema
using PassId = uint64_t;      // 1, 2, 3 ... ; 0 = nothing committed yet
using Term = uint64_t;        // a writer's term: grows by one with each claim; 0 = never claimed

// HugeCTR's hash tables mark an empty slot with the largest key, so its files never hold that key.
// Cistern refuses it too, so that every model can be exported back to HugeCTR.
inline constexpr Key kReservedKey32 = 0xFFFFFFFFull;
inline constexpr Key kReservedKey64 = 0x7FFFFFFFFFFFFFFFull;

}  // namespace cistern
