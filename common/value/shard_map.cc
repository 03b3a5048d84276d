#include "common/value/shard_map.h"

#include "common/base/hash.h"

namespace cistern {

absl::StatusOr<ShardMap> ShardMap::Create(uint32_t shard_num, uint32_t server_num) {
  if (server_num < 1 || server_num > shard_num || shard_num > 65536) {
    return absl::InvalidArgumentError(
        absl::StrCat("shard_num ", shard_num, " and server_num ", server_num,
                     " are out of range: 1 <= server_num <= shard_num <= 65536"));
  }
  return ShardMap(shard_num, server_num);
}

uint64_t ShardMap::hash() const {
  return HashBytes(absl::StrCat("interleaved/", shard_num(), "/", server_num_));
}

}  // namespace cistern
