#include "app/model/stoppable_model.h"

#include <utility>

namespace cistern::app {
namespace {

class StoppableModel : public CommittedModel {
 public:
  StoppableModel(std::unique_ptr<CommittedModel> model, const std::atomic<bool>& stop)
      : model_(std::move(model)), stop_(stop) {}

  const std::string& name() const override { return model_->name(); }
  CommittedVersion version() const override { return model_->version(); }
  const v1::Schema& schema() const override { return model_->schema(); }
  uint32_t shard_num() const override { return model_->shard_num(); }

  absl::Status Scan(TableId table, const Visit& visit) override {
    return model_->Scan(table, Checked(visit));
  }
  absl::Status ScanRemoved(TableId table, const std::function<absl::Status(Key)>& visit) override {
    CISTERN_RETURN_IF_ERROR(Check());
    return model_->ScanRemoved(table, visit);
  }
  absl::StatusOr<std::vector<uint64_t>> CountRows(TableId table, uint32_t server_num) override {
    return model_->CountRows(table, server_num);
  }
  absl::Status Pull(TableId table, absl::Span<const Key> keys, float* values,
                    uint8_t* has_embedx) override {
    CISTERN_RETURN_IF_ERROR(Check());
    return model_->Pull(table, keys, values, has_embedx);
  }
  absl::Status ScanCached(TableId table, const Visit& visit) override {
    return model_->ScanCached(table, Checked(visit));
  }
  absl::StatusOr<std::vector<float>> PullDense(TableId table) override {
    return model_->PullDense(table);
  }
  absl::Status Recheck() override {
    CISTERN_RETURN_IF_ERROR(Check());
    return model_->Recheck();
  }

 private:
  absl::Status Check() const {
    return stop_ ? absl::CancelledError("interrupted") : absl::OkStatus();
  }
  Visit Checked(const Visit& visit) const {
    return [this, &visit](uint32_t shard, Key key, const float* value, bool has_embedx) {
      const absl::Status stopped = Check();
      return stopped.ok() ? visit(shard, key, value, has_embedx) : stopped;
    };
  }

  const std::unique_ptr<CommittedModel> model_;
  const std::atomic<bool>& stop_;
};

}  // namespace

std::unique_ptr<CommittedModel> Stoppable(std::unique_ptr<CommittedModel> model,
                                          const std::atomic<bool>* stop) {
  if (stop == nullptr) return model;
  return std::make_unique<StoppableModel>(std::move(model), *stop);
}

}  // namespace cistern::app
