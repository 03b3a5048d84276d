#include "worker/train/score_sort.h"

#include <algorithm>

#include "cuda/op/key/sort_scores.h"

namespace cistern {
namespace {

absl::Status SortThere(DeviceContext& device, std::vector<float>* scores) {
  Stream& stream = device.stream();
  const size_t bytes = scores->size() * sizeof(float);
  const auto take = [&device](size_t wanted) {
    return device.pool().Take(MemoryPlace::kDevice, wanted, "scores");
  };
  CISTERN_ASSIGN_OR_RETURN(Memory there, take(bytes));
  CISTERN_ASSIGN_OR_RETURN(Memory scratch,
                           take(op::SortScoresScratchBytes(scores->size(), stream)));
  CopyToDevice(scores->data(), there.data(), bytes, stream);
  op::SortScores(static_cast<float*>(there.data()), scores->size(), scratch.data(), stream);
  std::vector<float> sorted(scores->size());
  CopyToHost(there.data(), sorted.data(), bytes, stream);
  CISTERN_RETURN_IF_ERROR(stream.Wait());
  *scores = std::move(sorted);
  return absl::OkStatus();
}

}  // namespace

void SortScoresOn(DeviceContext& device, std::vector<float>* scores) {
  if (SortThere(device, scores).ok()) return;
  std::sort(scores->begin(), scores->end());
}

}  // namespace cistern
