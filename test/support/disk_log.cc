#include "test/support/disk_log.h"

#include <xxhash.h>

#include <algorithm>

#include "common/base/hash.h"

namespace cistern {
namespace {

bool IsSync(const DiskOperation& operation) {
  return operation.kind == DiskOperation::kSyncFile || operation.kind == DiskOperation::kSyncFolder;
}

// For each of the first `prefix` operations, whether a later one among them synced it.
std::vector<bool> Synced(const std::vector<DiskOperation>& log, size_t prefix, size_t node_num) {
  std::vector<bool> synced(prefix), node_synced(node_num);
  for (size_t i = prefix; i-- > 0;) {
    const DiskOperation& operation = log[i];
    if (IsSync(operation)) {
      node_synced[operation.node] = true;
    } else {
      synced[i] =
          node_synced[operation.kind == DiskOperation::kAppend ? operation.node : operation.folder];
    }
  }
  return synced;
}

// Draws what a crash leaves of a file of `size` bytes, of which node.size are synced.
void LoseBytes(size_t size, uint64_t seed, SeededNumbers& numbers, DiskNode& node) {
  enum { kDrop, kZeros, kAll, kCut, kCutThenZeros };
  constexpr int kExtremes[] = {kDrop, kDrop, kAll, kZeros};
  const size_t synced = node.size;
  const uint64_t way = seed < 4 ? kExtremes[seed] : numbers.Below(5);
  if (way == kDrop) return;
  size_t kept = synced;
  if (way == kAll) kept = size;
  if (way == kCut || way == kCutThenZeros) kept += numbers.Below(size - synced + 1);
  node.size = kept;
  if (way != kZeros && way != kCutThenZeros) return;
  node.bytes = std::make_shared<std::string>(*node.bytes, 0, kept);
  node.bytes->resize(size);
  node.size = size;
}

// Draws what a crash leaves of a naming operation that no sync covers.
void LoseName(const DiskOperation& operation, uint64_t seed, SeededNumbers& numbers,
              DiskNodes& nodes) {
  const bool keep = seed < 4 ? seed % 2 == 1 : numbers.Below(2) == 1;
  if (!keep) return;
  if (operation.kind == DiskOperation::kRename && seed >= 4 && numbers.Below(3) == 0) {
    nodes[operation.folder].entries[operation.name] = operation.node;  // the old name stays, too
    return;
  }
  Apply(operation, &nodes);
}

// Appends the input of the hash: the names of a folder, in order, each with the hash of its file.
// path: of the folder, with a trailing slash.
void AppendFolder(const DiskNodes& nodes, size_t folder, const std::string& path,
                  const std::function<bool(const std::string& path)>& looks_into,
                  std::string* out) {
  for (const auto& [name, entry] : nodes[folder].entries) {
    const DiskNode& node = nodes[entry];
    *out += node.folder ? 'd' : node.link.empty() ? 'f' : 'l';
    out->append(name.c_str(), name.size() + 1);
    if (!node.link.empty()) out->append(node.link.c_str(), node.link.size() + 1);
    if (node.folder) {
      AppendFolder(nodes, entry, path + name + "/", looks_into, out);
    } else if (looks_into(path + name)) {
      const XXH128_hash_t hash = XXH3_128bits(node.bytes->data(), node.size);
      out->append(reinterpret_cast<const char*>(&hash), sizeof(hash));
    }
  }
  *out += '.';
}

}  // namespace

DiskHash HashOf(const DiskNodes& nodes,
                const std::function<bool(const std::string& path)>& looks_into) {
  std::string names;
  AppendFolder(nodes, 0, "/", looks_into, &names);
  const XXH128_hash_t hash = XXH3_128bits(names.data(), names.size());
  return {hash.low64, hash.high64};
}

uint64_t SeededNumbers::Below(uint64_t bound) {
  return MixKey(state_++) % bound;
}

void Apply(const DiskOperation& operation, DiskNodes* disk) {
  DiskNodes& nodes = *disk;
  switch (operation.kind) {
    case DiskOperation::kRename:
      nodes[operation.folder].entries.erase(operation.old_name);
      nodes[operation.folder].entries[operation.name] = operation.node;
      break;
    case DiskOperation::kExchange: {
      auto& entries = nodes[operation.folder].entries;
      const auto one = entries.find(operation.name), other = entries.find(operation.old_name);
      // A crash may have lost a name.
      if (one != entries.end() && other != entries.end()) std::swap(one->second, other->second);
      break;
    }
    case DiskOperation::kName:
      nodes[operation.folder].entries[operation.name] = operation.node;
      break;
    case DiskOperation::kRemove:
      nodes[operation.folder].entries.erase(operation.name);
      break;
    case DiskOperation::kAppend:
      nodes[operation.node].size = operation.size;
      break;
    case DiskOperation::kSyncFile:
    case DiskOperation::kSyncFolder:
      break;
  }
}

void ReplayAll(const std::vector<DiskOperation>& log, size_t prefix, DiskNodes* nodes) {
  for (size_t i = 0; i < prefix; ++i) Apply(log[i], nodes);
}

void ReplayOrdered(const std::vector<DiskOperation>& log, size_t prefix, uint64_t seed,
                   DiskNodes* nodes) {
  const std::vector<bool> synced = Synced(log, prefix, nodes->size());
  size_t pending = 0;
  for (size_t i = 0; i < prefix; ++i) pending += !synced[i] && !IsSync(log[i]);
  SeededNumbers numbers(MixKey(seed));
  size_t kept = numbers.Below(pending + 1);
  for (size_t i = 0; i < prefix; ++i) {
    if (IsSync(log[i])) continue;
    if (synced[i] || kept > 0) {
      Apply(log[i], nodes);
      if (!synced[i]) --kept;
      continue;
    }
    if (pending > 0 && log[i].kind == DiskOperation::kAppend) {
      size_t& size = (*nodes)[log[i].node].size;
      size += numbers.Below(log[i].size - size + 1);
    }
    pending = 0;  // only the first lost operation may survive in part
  }
}

void ReplayWeak(const std::vector<DiskOperation>& log, size_t prefix, uint64_t seed,
                DiskNodes* nodes) {
  const std::vector<bool> synced = Synced(log, prefix, nodes->size());
  SeededNumbers numbers(MixKey(seed) + 1);
  std::map<size_t, size_t> sizes;  // sizes of files with bytes that no sync covers
  for (size_t i = 0; i < prefix; ++i) {
    if (IsSync(log[i])) continue;
    if (synced[i]) {
      Apply(log[i], nodes);
    } else if (log[i].kind == DiskOperation::kAppend) {
      sizes[log[i].node] = log[i].size;
    } else {
      LoseName(log[i], seed, numbers, *nodes);
    }
  }
  for (const auto& [node, size] : sizes) LoseBytes(size, seed, numbers, (*nodes)[node]);
}

}  // namespace cistern
