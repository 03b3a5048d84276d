// Maps keys to servers: shard = key % shard_num, server = shard % server_num.
//
// The shard is a property of the key alone, so a model saved by any number of servers loads onto
// any other number.
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "common/base/types.h"

namespace cistern {

// x % d without a division: one multiplication yields the quotient or one less (Barrett).
class FastModulus {
 public:
  explicit FastModulus(uint32_t divisor)
      : divisor_(divisor), inverse_(divisor == 1 ? ~0ull : ~0ull / divisor) {}
  uint32_t divisor() const { return divisor_; }
  uint32_t operator()(uint64_t x) const {
    const uint64_t quotient =
        static_cast<uint64_t>((static_cast<unsigned __int128>(x) * inverse_) >> 64);
    uint64_t rest = x - quotient * divisor_;
    while (rest >= divisor_) rest -= divisor_;
    return static_cast<uint32_t>(rest);
  }

 private:
  uint64_t divisor_;
  uint64_t inverse_;
};

// Threads: immutable; any thread.
class ShardMap {
 public:
  // kInvalidArgument unless 1 <= server_num <= shard_num <= 65536.
  static absl::StatusOr<ShardMap> Create(uint32_t shard_num, uint32_t server_num);

  uint32_t shard_num() const { return modulus_.divisor(); }
  uint32_t server_num() const { return server_num_; }
  ShardIndex shard(Key key) const { return modulus_(key); }
  uint32_t server(ShardIndex shard) const { return shard % server_num_; }
  // Index of a shard among the shards of its server.
  uint32_t local_index(ShardIndex shard) const { return shard / server_num_; }
  // The shard with index `local` on server `rank`.
  ShardIndex global_shard(uint32_t rank, uint32_t local) const {
    return rank + local * server_num_;
  }
  // The number of shards on server `rank`: shard_num / server_num, plus one on the first
  // shard_num % server_num servers.
  uint32_t local_shard_num(uint32_t rank) const {
    return shard_num() / server_num_ + (rank < shard_num() % server_num_ ? 1 : 0);
  }
  // Identity of this map, sent with every call.
  uint64_t hash() const;

 private:
  ShardMap(uint32_t shard_num, uint32_t server_num)
      : modulus_(shard_num), server_num_(server_num) {}
  FastModulus modulus_;
  uint32_t server_num_;
};

}  // namespace cistern
