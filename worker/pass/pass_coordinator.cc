#include "worker/pass/pass_coordinator.h"

#include <utility>

#include "worker/group/message.h"
#include "worker/pass/key_owner.h"

namespace cistern {
namespace {

// A batch costs one exchange. An owner then holds at most the keys that it held before plus the
// keys it receives now; while that bound fits, the number of duplicates does not matter. Only when
// the pass may be full does a second exchange share the exact numbers.
class GroupCoordinator : public data::PassCoordinator {
 public:
  GroupCoordinator(group::ProcessGroup& group, const std::vector<size_t>& value_bytes)
      : group_(group) {
    for (const size_t bytes : value_bytes) key_bytes_.push_back(bytes + data::kKeyBytes);
    Take();
  }

  absl::StatusOr<Claim> Agree(const absl::StatusOr<Claim>& own,
                              absl::Span<const absl::Span<const Key>> keys) override {
    before_ = Sizes();
    CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> said,
                             own.ok() ? group_.TryExchange(Messages(*own, OwnedBytes(), keys))
                                      : group_.TryExchange(own.status()));
    std::vector<Claim> claims;  // by worker, with the upper bound of what it owns
    std::vector<uint64_t> most(group_.size());
    for (size_t r = 0; r < said.size(); ++r) {
      group::MessageReader reader(said[r], r);
      CISTERN_RETURN_IF_ERROR(reader.Take(1, &claims));
      std::vector<uint64_t> named;
      CISTERN_ASSIGN_OR_RETURN(const uint64_t held, reader.TakeNumber<uint64_t>());
      CISTERN_RETURN_IF_ERROR(reader.Take(group_.size(), &named));
      most[r] += held;
      for (size_t owner = 0; owner < named.size(); ++owner) most[owner] += named[owner];
      if (claims[r].samples != own->samples) return OtherData(r, claims[r].samples, own->samples);
      CISTERN_RETURN_IF_ERROR(Learn(r, &reader));
      if (!reader.at_end()) return reader.Wrong("sent keys of more inputs than exist");
    }
    const Claim shortest = Shortest(claims, most);
    if (shortest.Fits()) return shortest;
    CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> owned, AllOwnedBytes());
    return Shortest(claims, owned);
  }

  absl::StatusOr<std::vector<std::vector<uint64_t>>> Share(
      const absl::StatusOr<std::vector<uint64_t>>& own) override {
    std::string message;
    if (own.ok()) group::PutNumbers<uint64_t>(*own, &message);
    CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> said,
                             own.ok() ? group_.Gather(message) : group_.Gather(own.status()));
    std::vector<std::vector<uint64_t>> all(said.size());
    for (size_t r = 0; r < said.size(); ++r) {
      group::MessageReader reader(said[r], r);
      CISTERN_RETURN_IF_ERROR(reader.TakeRest(&all[r]));
    }
    return all;
  }

  void Drop() override {
    for (size_t i = 0; i < owned_.size(); ++i) {
      owned_[i].keys.Truncate(before_[i].keys);
      for (size_t r = 0; r < group_.size(); ++r) owned_[i].asked[r].resize(before_[i].asked[r]);
    }
  }

  std::vector<data::OwnedKeys> Take() override {
    std::vector<data::OwnedKeys> none(key_bytes_.size());
    for (data::OwnedKeys& keys : none) keys.asked.resize(group_.size());
    return std::exchange(owned_, std::move(none));
  }

 private:
  // The size of an input's owned keys, to roll back to.
  struct Size {
    size_t keys = 0;
    std::vector<size_t> asked;
  };
  std::vector<Size> Sizes() const {
    std::vector<Size> sizes;
    for (const data::OwnedKeys& owned : owned_) {
      Size& size = sizes.emplace_back(Size{owned.keys.size(), {}});
      for (const std::vector<Row>& rows : owned.asked) size.asked.push_back(rows.size());
    }
    return sizes;
  }

  uint64_t OwnedBytes() const {
    uint64_t bytes = 0;
    for (size_t i = 0; i < owned_.size(); ++i) bytes += owned_[i].keys.size() * key_bytes_[i];
    return bytes;
  }
  absl::StatusOr<std::vector<uint64_t>> AllOwnedBytes() {
    const uint64_t own = OwnedBytes();
    std::string message;
    group::PutNumbers<uint64_t>({&own, 1}, &message);
    CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> said, group_.Gather(message));
    std::vector<uint64_t> all;
    for (size_t r = 0; r < said.size(); ++r) {
      CISTERN_RETURN_IF_ERROR(group::MessageReader(said[r], r).Take(1, &all));
    }
    return all;
  }

  // The message to each worker: the claim, the bytes of the keys owned here, the bytes of the keys
  // sent to each owner now, and the keys that the receiver owns, by input.
  std::vector<std::string> Messages(const Claim& own, uint64_t held_bytes,
                                    absl::Span<const absl::Span<const Key>> keys) const {
    const uint32_t workers = group_.size();
    std::vector<std::vector<std::vector<Key>>> named(
        workers, std::vector<std::vector<Key>>(keys.size()));  // by owner and input
    std::vector<uint64_t> named_bytes(workers);
    for (size_t i = 0; i < keys.size(); ++i) {
      for (const Key key : keys[i]) {
        const uint32_t owner = OwnerOf(key, workers);
        named[owner][i].push_back(key);
        named_bytes[owner] += key_bytes_[i];
      }
    }
    std::vector<std::string> messages(workers);
    for (uint32_t r = 0; r < workers; ++r) {
      group::PutNumbers<Claim>({&own, 1}, &messages[r]);
      group::PutNumbers<uint64_t>({&held_bytes, 1}, &messages[r]);
      group::PutNumbers<uint64_t>(named_bytes, &messages[r]);
      for (const std::vector<Key>& some : named[r]) group::PutArray<Key>(some, &messages[r]);
    }
    return messages;
  }

  // Adds the keys that worker r has sent.
  absl::Status Learn(size_t r, group::MessageReader* reader) {
    std::vector<Key> keys;
    for (data::OwnedKeys& owned : owned_) {
      keys.clear();
      CISTERN_RETURN_IF_ERROR(reader->TakeArray(&keys));
      std::vector<Row>& rows = owned.asked[r];
      rows.resize(rows.size() + keys.size());
      owned.keys.Add(keys, rows.data() + rows.size() - keys.size());
    }
    return absl::OkStatus();
  }

  // The claim of the worker with the least memory left, or the largest deficit; the same for the
  // batches. owned: bytes, by worker.
  static Claim Shortest(const std::vector<Claim>& claims, const std::vector<uint64_t>& owned) {
    Claim shortest;
    for (size_t r = 0; r < claims.size(); ++r) {
      const Claim& claim = claims[r];
      const uint64_t bytes = claim.bytes + owned[r];
      // Compares budget - bytes of both claims without unsigned underflow.
      if (r == 0 || claim.budget + shortest.bytes < shortest.budget + bytes) {
        shortest.bytes = bytes;
        shortest.budget = claim.budget;
      }
      if (r == 0 ||
          claim.batch_budget + shortest.batch_bytes < shortest.batch_budget + claim.batch_bytes) {
        shortest.batch_bytes = claim.batch_bytes;
        shortest.batch_budget = claim.batch_budget;
      }
      shortest.samples = claim.samples;
    }
    return shortest;
  }

  absl::Status OtherData(size_t other, uint64_t there, uint64_t here) const {
    return absl::FailedPreconditionError(
        absl::StrCat("worker ", other, " reads other data: its next batch has ", there,
                     " samples, the batch of worker ", group_.rank(), " has ", here,
                     "; give all workers the same files"));
  }

  group::ProcessGroup& group_;
  std::vector<size_t> key_bytes_;       // by input: a key and its value
  std::vector<data::OwnedKeys> owned_;  // by input, of the current pass
  std::vector<Size> before_;            // by input: the size before the last agreed batch
};

}  // namespace

std::unique_ptr<data::PassCoordinator> CoordinatorOf(group::ProcessGroup& group,
                                                     const std::vector<size_t>& value_bytes) {
  return std::make_unique<GroupCoordinator>(group, value_bytes);
}

}  // namespace cistern
