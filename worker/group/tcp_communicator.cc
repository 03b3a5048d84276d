// Every call is one or two all-to-all exchanges (peers.h). A sum of n numbers over p ranks moves
// 2 n (p - 1) / p numbers into and out of each rank, like a ring: rank r adds up slice r, then
// sends it to all (reduce-scatter, all-gather).
#include "worker/group/tcp_communicator.h"

#include <cstring>
#include <vector>

#include "worker/group/peers.h"
#include "worker/group/rank_order_sum.h"

namespace cistern::group {
namespace {

class TcpCommunicator : public Communicator {
 public:
  explicit TcpCommunicator(std::unique_ptr<Peers> peers)
      : Communicator(peers->rank(), peers->size()),
        peers_(std::move(peers)),
        send_(Ranks()),
        receive_(Ranks()),
        parts_(Ranks()) {}

  absl::Status AllReduce(void* data, size_t count, ElementType type, Stream& stream) override {
    CISTERN_RETURN_IF_ERROR(Check(stream));
    if (size() == 1) return absl::OkStatus();
    const CallShape call = {"AllReduce", count, static_cast<uint32_t>(type)};
    const size_t element = BytesOf(type),
                 mine = SliceBegin(count, Own() + 1) - SliceBegin(count, Own());
    if (scratch_.size() < Ranks() * mine * element) scratch_.resize(Ranks() * mine * element);
    for (size_t r = 0; r < Ranks(); ++r) {
      send_[r] = Slice(data, count, element, r);
      receive_[r] = {scratch_.data() + r * mine * element, mine * element};
      parts_[r] = r == Own() ? send_[r].data : receive_[r].data;
    }
    CISTERN_RETURN_IF_ERROR(peers_->Exchange(call, send_, receive_));
    Add(type, mine, const_cast<void*>(send_[Own()].data));
    return HandOut(call, data, count, element);
  }

  absl::Status AllToAll(const void* send, absl::Span<const size_t> send_bytes, void* receive,
                        absl::Span<const size_t> receive_bytes, Stream& stream) override {
    CISTERN_RETURN_IF_ERROR(Check(stream));
    if (send_bytes.size() != Ranks() || receive_bytes.size() != Ranks()) {
      return absl::InvalidArgumentError(absl::StrCat("AllToAll: sizes for ", send_bytes.size(),
                                                     " and ", receive_bytes.size(),
                                                     " ranks in a group of ", Ranks()));
    }
    const auto* from = static_cast<const char*>(send);
    auto* to = static_cast<char*>(receive);
    for (size_t r = 0; r < Ranks(); ++r) {
      send_[r] = {from, send_bytes[r]};
      receive_[r] = {to, receive_bytes[r]};
      from += send_bytes[r];
      to += receive_bytes[r];
    }
    const SentPart& own = send_[Own()];
    if (own.bytes != receive_[Own()].bytes) {
      return absl::InvalidArgumentError(absl::StrCat("AllToAll: rank ", rank(), " sends itself ",
                                                     own.bytes, " bytes and expects ",
                                                     receive_[Own()].bytes));
    }
    if (own.bytes > 0) std::memcpy(receive_[Own()].data, own.data, own.bytes);
    return peers_->Exchange({"AllToAll", 0, 0}, send_, receive_);
  }

  // A long message is scattered in slices, and each rank then sends its slice to all. Thus the
  // message leaves the root only once.
  absl::Status Broadcast(void* data, size_t bytes, int root, Stream& stream) override {
    CISTERN_RETURN_IF_ERROR(Check(stream));
    if (root < 0 || root >= size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("Broadcast: rank ", root, " is not in a group of ", size()));
    }
    const auto from = static_cast<size_t>(root);
    const CallShape call = {"Broadcast", bytes, static_cast<uint32_t>(root)};
    for (size_t r = 0; r < Ranks(); ++r) {
      send_[r] = from == Own() ? Slice(data, bytes, 1, r) : SentPart{};
      receive_[r] = r == from ? Mutable(Slice(data, bytes, 1, Own())) : ReceivedPart{};
    }
    CISTERN_RETURN_IF_ERROR(peers_->Exchange(call, send_, receive_));
    return HandOut(call, data, bytes, 1);
  }

  absl::Status Barrier(Stream& stream) override {
    CISTERN_RETURN_IF_ERROR(Check(stream));
    std::fill(send_.begin(), send_.end(), SentPart{});
    std::fill(receive_.begin(), receive_.end(), ReceivedPart{});
    return peers_->Exchange({"Barrier", 0, 0}, send_, receive_);
  }

  absl::Status Wait(Stream& stream) override { return Check(stream); }
  absl::Status Wait(Event&, Stream& stream) override { return Check(stream); }

  void Abort(const absl::Status& why) override { peers_->Abort(why); }
  void Interrupt(const absl::Status& why) override { peers_->Interrupt(why); }

 private:
  size_t Ranks() const { return static_cast<size_t>(size()); }
  size_t Own() const { return static_cast<size_t>(rank()); }

  static absl::Status Check(Stream& stream) {
    if (stream.device() != DeviceKind::kCpu) {
      return absl::InvalidArgumentError(
          "a CPU communicator was given a GPU stream; create one for the GPU with "
          "Communicator::OnGpu");
    }
    return stream.status();
  }

  // The first element of rank r's slice.
  size_t SliceBegin(size_t count, size_t r) const {
    return count / Ranks() * r + std::min(count % Ranks(), r);
  }
  SentPart Slice(const void* data, size_t count, size_t element, size_t r) const {
    const size_t begin = SliceBegin(count, r) * element;
    return {static_cast<const char*>(data) + begin, SliceBegin(count, r + 1) * element - begin};
  }
  static ReceivedPart Mutable(SentPart part) { return {const_cast<void*>(part.data), part.bytes}; }

  void Add(ElementType type, size_t count, void* out) {
    switch (type) {
      case ElementType::kFloat:
        return SumInRankOrder<FloatSum>(parts_, count, out);
      case ElementType::kHalf:
        return SumInRankOrder<HalfSum>(parts_, count, out);
      case ElementType::kBfloat16:
        return SumInRankOrder<Bfloat16Sum>(parts_, count, out);
      case ElementType::kDouble:
        return SumInRankOrder<DoubleSum>(parts_, count, out);
      case ElementType::kInt64:
        return SumInRankOrder<Int64Sum>(parts_, count, out);
    }
  }

  // All-gather: every rank sends its own slice to all.
  absl::Status HandOut(const CallShape& call, void* data, size_t count, size_t element) {
    for (size_t r = 0; r < Ranks(); ++r) {
      send_[r] = Slice(data, count, element, Own());
      receive_[r] = Mutable(Slice(data, count, element, r));
    }
    return peers_->Exchange(call, send_, receive_);
  }

  const std::unique_ptr<Peers> peers_;
  std::vector<char> scratch_;  // grows to the largest call
  std::vector<SentPart> send_;
  std::vector<ReceivedPart> receive_;
  std::vector<const void*> parts_;  // by rank: that rank's part of a slice
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> ConnectOverTcp(GroupOptions group) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<Peers> peers, Peers::Connect(std::move(group)));
  return std::make_unique<TcpCommunicator>(std::move(peers));
}

}  // namespace cistern::group
