#include "worker/pass/sample_weights.h"

#include <string>
#include <utility>

#include "worker/data/format/sample_block.h"
#include "worker/group/message.h"

namespace cistern {
namespace {

// By batch: the sum of the weights of this worker's samples.
std::vector<double> SumsOf(const data::Pass& pass) {
  std::vector<double> sums;
  for (const data::HostBatch& batch : pass.batches) {
    double& sum = sums.emplace_back(0);
    for (const float weight : batch.weight) sum += static_cast<double>(weight);
  }
  return sums;
}

absl::StatusOr<std::vector<double>> SumsOfAll(group::ProcessGroup& group,
                                              const std::vector<double>& own) {
  std::string message;
  group::PutNumbers<double>(own, &message);
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> said, group.Gather(message));
  std::vector<double> sums(own.size());
  for (size_t r = 0; r < said.size(); ++r) {
    std::vector<double> some;
    CISTERN_RETURN_IF_ERROR(group::MessageReader(said[r], r).Take(own.size(), &some));
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += some[i];
  }
  return sums;
}

}  // namespace

void TakeWeights(data::Pass* pass) {
  for (data::HostBatch& batch : pass->batches)
    batch.weight = data::TakeWeights(batch.size, &batch.label);
}

absl::Status ScaleWeights(group::ProcessGroup* group, data::Pass* pass) {
  std::vector<double> sums = SumsOf(*pass);
  if (group != nullptr) {
    CISTERN_ASSIGN_OR_RETURN(sums, SumsOfAll(*group, sums));
  }
  for (size_t b = 0; b < sums.size(); ++b) {
    data::HostBatch& batch = pass->batches[b];
    const double all = static_cast<double>(batch.all);
    for (float& weight : batch.weight) {
      // In this order, a weight that equals all others becomes exactly 1, whatever it is.
      weight = sums[b] > 0 ? static_cast<float>(static_cast<double>(weight) * all / sums[b]) : 0;
    }
  }
  return absl::OkStatus();
}

}  // namespace cistern
