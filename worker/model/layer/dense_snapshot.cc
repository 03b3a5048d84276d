#include "worker/model/layer/dense_snapshot.h"

#include <utility>

namespace cistern::model {

absl::StatusOr<DenseSnapshot> DenseSnapshot::Create(DeviceContext& device) {
  CISTERN_ASSIGN_OR_RETURN(Stream stream, device.NewStream(StreamPriority::kBackground));
  CISTERN_ASSIGN_OR_RETURN(Event copied, Event::Create(device.kind()));
  return DenseSnapshot(device, std::move(stream), std::move(copied));
}

absl::Status DenseSnapshot::Take(const Parameters& parameters) {
  tables_.resize(parameters.tables().size());
  for (size_t i = 0; i < tables_.size(); ++i) {
    Table& table = tables_[i];
    table.values = parameters.ValuesOf(i);
    const size_t bytes = table.values * sizeof(float);
    if (table.on_device.bytes() < bytes) {
      CISTERN_ASSIGN_OR_RETURN(table.on_device,
                               device_->pool().Take(MemoryPlace::kDevice, bytes, "snapshot"));
      if (device_->kind() != DeviceKind::kCpu) {
        CISTERN_ASSIGN_OR_RETURN(table.on_host,
                                 device_->pool().Take(MemoryPlace::kPinned, bytes, "snapshot"));
      }
    }
    parameters.CopyTable(i, static_cast<float*>(table.on_device.data()), device_->stream());
  }
  copied_.Record(device_->stream());
  return device_->stream().status();
}

absl::StatusOr<absl::Span<const float>> DenseSnapshot::Read(size_t i) {
  Table& table = tables_[i];
  if (device_->kind() == DeviceKind::kCpu) {
    return absl::Span<const float>(static_cast<const float*>(table.on_device.data()), table.values);
  }
  copied_.MakeWait(stream_);
  CopyToHost(table.on_device.data(), table.on_host.data(), table.values * sizeof(float), stream_);
  CISTERN_RETURN_IF_ERROR(stream_.Wait());
  return absl::Span<const float>(static_cast<const float*>(table.on_host.data()), table.values);
}

}  // namespace cistern::model
