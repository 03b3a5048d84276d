#include "app/track/tensorboard_log.h"

#include <unistd.h>

#include <cstring>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "app/track/crc32c.h"
#include "app/track/event_figures.h"

namespace cistern::app {
namespace {

template <class T>
void AppendNumber(T number, std::string* bytes) {  // little-endian, as this machine is
  char raw[sizeof(T)];
  std::memcpy(raw, &number, sizeof(T));
  bytes->append(raw, sizeof(T));
}

// A checksum of bytes that hold checksums is weak, so the format masks them.
uint32_t MaskedCrc(absl::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

// "events.out.tfevents.1764227000.host.1234": the name by which TensorBoard finds it, in the order
// of time.
std::string FileName() {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  for (char& c : host) {
    if (c == '/') c = '_';
  }
  return absl::StrFormat("events.out.tfevents.%010d.%s.%d", absl::ToUnixSeconds(absl::Now()), host,
                         getpid());
}

}  // namespace

std::string TensorboardRecord(absl::string_view bytes) {
  std::string record;
  AppendNumber<uint64_t>(bytes.size(), &record);
  AppendNumber<uint32_t>(MaskedCrc(record), &record);
  record.append(bytes.data(), bytes.size());
  AppendNumber<uint32_t>(MaskedCrc(bytes), &record);
  return record;
}

absl::StatusOr<std::unique_ptr<Tracker>> TensorboardLog::Open(FileSystem& files,
                                                              const TrackedRun& run) {
  const std::string folder = run.folder + "/tensorboard";
  CISTERN_RETURN_IF_ERROR(files.MakeFolders(folder));
  const std::string name = absl::StrCat(folder, "/", FileName());
  // Two runs of a process within a second have a file each.
  for (int number = 0;; ++number) {
    absl::StatusOr<std::unique_ptr<WritableFile>> file =
        files.Create(absl::StrCat(name, ".", number));
    if (absl::IsAlreadyExists(file.status()) && number < 1000) continue;
    CISTERN_RETURN_IF_ERROR(file.status());
    (*file)->WillBeRead();  // each event reaches the file at once
    std::unique_ptr<TensorboardLog> log(new TensorboardLog(*std::move(file)));
    tensorboard::Event first;
    first.set_file_version("brain.Event:2");
    CISTERN_RETURN_IF_ERROR(log->Append(std::move(first)));
    return log;
  }
}

absl::Status TensorboardLog::Append(tensorboard::Event event) {
  event.set_wall_time(absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()));
  return file_->Append(TensorboardRecord(event.SerializeAsString()));
}

absl::Status TensorboardLog::Observe(const Progress& progress) {
  tensorboard::Event event;
  if (TakesBack(progress)) {
    event.set_step(static_cast<int64_t>(progress.iter) + 1);
    event.mutable_session_log()->set_status(tensorboard::SessionLog::START);
    return Append(std::move(event));
  }
  const auto figures = FiguresOf(progress);
  if (figures.empty()) return absl::OkStatus();
  event.set_step(static_cast<int64_t>(progress.iter));
  for (const auto& [name, value] : figures) {
    tensorboard::Value* const added = event.mutable_summary()->add_value();
    added->set_tag(name);
    added->set_simple_value(static_cast<float>(value));
  }
  return Append(std::move(event));
}

absl::Status TensorboardLog::End(RunOutcome) {
  return file_->Close();
}

}  // namespace cistern::app
