#include "worker/export/serving/base_merge.h"

#include <sys/resource.h>

#include <algorithm>
#include <new>

#include "absl/strings/str_format.h"
#include "common/io/new_file.h"
#include "common/serving/merge_rows.h"
#include "worker/export/serving/table_layers.h"

namespace cistern {
namespace {

constexpr char kBaseLock[] = "BASE_LOCK";

}  // namespace

BaseMerge::~BaseMerge() {
  Drop();
}

void BaseMerge::Start(const ServingVersion& version, const std::vector<size_t>& tables) {
  std::vector<Base> bases;
  for (const size_t t : tables) {
    const ServingTable& table = version.tables[t];
    bases.push_back(
        {t, table.name, version.precision, table.dim, table.digest, table.layers, ServingFile()});
  }
  {
    const absl::MutexLock lock(&mutex_);
    if (bases.empty() || !bases_.empty()) return;
    bases_ = bases;
    running_ = true;
    dropped_ = false;
    status_ = absl::OkStatus();
  }
  thread_.Run([this, bases = std::move(bases)]() mutable { Run(std::move(bases)); });
}

void BaseMerge::Run(std::vector<Base> bases) {
  constexpr int kNice = 15;  // versions come first; on Linux this affects only this thread
  setpriority(PRIO_PROCESS, 0, std::max(getpriority(PRIO_PROCESS, 0), kNice));
  // Two publishers of one folder would write to the same file.
  const absl::StatusOr<std::unique_ptr<FileLock>> lock =
      files_->Lock(absl::StrCat(root_, "/", kBaseLock));
  absl::Status status = lock.status();
  for (size_t i = 0; i < bases.size() && status.ok(); ++i) {
    try {
      status = Write(&bases[i]);
    } catch (const std::bad_alloc&) {
      status = absl::ResourceExhaustedError("out of memory");
    }
    status = AddContext(status, absl::StrCat("a new base of table '", bases[i].name, "'"));
  }
  const absl::MutexLock mutex_lock(&mutex_);
  running_ = false;
  if (absl::IsFailedPrecondition(status)) {  // another process merges
    dropped_ = true;
    status = absl::OkStatus();
  }
  status_ = status;
  bases_ = dropped_ ? std::vector<Base>() : std::move(bases);
}

absl::Status BaseMerge::Write(Base* base) const {
  const RowsShape shape = {base->precision, base->dim};
  CISTERN_ASSIGN_OR_RETURN(
      const TableLayers layers,
      TableLayers::Open(root_, base->layers, shape, /*verify=*/false, /*verified=*/nullptr));
  std::vector<const RowsView*> views;
  for (const RowsView& view : layers.views()) views.push_back(&view);
  const std::string& newest = base->layers.back().path;
  const std::string path = absl::StrCat(newest.substr(0, newest.find('/')),
                                        absl::StrFormat("/base-%03d.rows", base->table));
  CISTERN_ASSIGN_OR_RETURN(const auto file,
                           NewFile::Create(*files_, absl::StrCat(root_, "/", path)));
  file->WillBeRead();
  RowsEncoder encoder(shape, [&](absl::string_view bytes) {
    return is_dropped() ? absl::CancelledError() : file->Append(bytes);
  });
  CISTERN_RETURN_IF_ERROR(MergeRows(views, /*keep_removed=*/false, &encoder));
  if (encoder.digest() != base->digest) {
    return absl::DataLossError("the layers do not add up to the digest of the table");
  }
  CISTERN_RETURN_IF_ERROR(file->Close());
  base->file = {path, encoder.bytes(), encoder.file_xxh3()};
  return absl::OkStatus();
}

bool BaseMerge::Fits(const Base& base, const ServingVersion& version) {
  if (base.table >= version.tables.size() || base.precision != version.precision) return false;
  const ServingTable& table = version.tables[base.table];
  return base.name == table.name && base.dim == table.dim &&
         base.layers.size() <= table.layers.size() &&
         std::equal(base.layers.begin(), base.layers.end(), table.layers.begin());
}

absl::StatusOr<bool> BaseMerge::Apply(ServingVersion* version) {
  const absl::MutexLock lock(&mutex_);
  const bool fits = std::all_of(bases_.begin(), bases_.end(),
                                [&](const Base& base) { return Fits(base, *version); });
  if (fits && (running_ || bases_.empty())) return false;
  const absl::Status status = fits ? status_ : absl::OkStatus();
  if (!fits || !status.ok()) {
    dropped_ = true;
    if (!running_) bases_.clear();
    if (!status.ok()) return status;
    return false;
  }
  for (const Base& base : bases_) {
    ServingTable& table = version->tables[base.table];
    const auto rest = table.layers.begin() + static_cast<ptrdiff_t>(base.layers.size());
    std::vector<ServingFile> layers = {base.file};
    layers.insert(layers.end(), rest, table.layers.end());
    table.layers = std::move(layers);
    table.base_digest =
        table.layers.size() > 1 ? std::optional<uint64_t>(base.digest) : std::nullopt;
  }
  return true;
}

void BaseMerge::Drop() {
  const absl::MutexLock lock(&mutex_);
  dropped_ = true;
  if (!running_) bases_.clear();
}

bool BaseMerge::is_dropped() const {
  const absl::MutexLock lock(&mutex_);
  return dropped_;
}

void BaseMerge::AwaitEnd() const {
  const absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](const bool* running) { return !*running; }, &running_));
}

}  // namespace cistern
