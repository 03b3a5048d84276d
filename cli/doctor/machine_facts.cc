#include "cli/doctor/machine_facts.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/json_depth.h"

namespace cistern::cli {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kMaxDepth = 8;

// Calls visit(name, member) for every fact.
template <typename Facts, typename Visit>
void VisitGpu(Facts& gpu, Visit visit) {
  visit("name", gpu.name);
  visit("memory_bytes", gpu.memory_bytes);
  visit("trouble", gpu.trouble);
}

template <typename Facts, typename Visit>
void VisitFolder(Facts& folder, Visit visit) {
  visit("path", folder.path);
  visit("is_data_folder", folder.is_data_folder);
  visit("trouble", folder.trouble);
  visit("file_system", folder.file_system);
  visit("bytes", folder.bytes);
  visit("free_bytes", folder.free_bytes);
  visit("free_files", folder.free_files);
  visit("sync_ms", folder.sync_ms);
  visit("newest_commit", folder.newest_commit);
  visit("state_trouble", folder.state_trouble);
}

template <typename Facts, typename Visit>
void VisitPort(Facts& port, Visit visit) {
  visit("port", port.port);
  visit("named", port.named);
  visit("trouble", port.trouble);
}

template <typename Facts, typename Visit>
void VisitMachine(Facts& facts, Visit visit) {
  visit("version", facts.version);
  visit("kernel", facts.kernel);
  visit("processor", facts.processor);
  visit("parquet", facts.parquet);
  visit("cuda_build", facts.cuda_build);
  visit("missing_instructions", facts.missing_instructions);
  visit("cores", facts.cores);
  visit("load", facts.load);
  visit("memory_bytes", facts.memory_bytes);
  visit("available_bytes", facts.available_bytes);
  visit("overcommit", facts.overcommit);
  visit("huge_pages", facts.huge_pages);
  visit("open_files", facts.open_files);
  visit("processes", facts.processes);
  visit("file_bytes", facts.file_bytes);
  visit("address_bytes", facts.address_bytes);
  visit("unix_seconds", facts.unix_seconds);
  visit("clock_synchronized", facts.clock_synchronized);
  visit("clock_source", facts.clock_source);
  visit("has_localhost", facts.has_localhost);
  visit("first_client_port", facts.first_client_port);
  visit("last_client_port", facts.last_client_port);
  visit("has_gpu_driver", facts.has_gpu_driver);
  visit("is_built_for_gpus", facts.is_built_for_gpus);
  visit("no_gpu", facts.no_gpu);
  visit("gpus", facts.gpus);
  visit("folders", facts.folders);
  visit("ports", facts.ports);
}

template <typename Visit>
void VisitAll(const GpuFacts& facts, Visit visit) {
  VisitGpu(facts, visit);
}
template <typename Visit>
void VisitAll(const FolderFacts& facts, Visit visit) {
  VisitFolder(facts, visit);
}
template <typename Visit>
void VisitAll(const PortFacts& facts, Visit visit) {
  VisitPort(facts, visit);
}
template <typename Visit>
void VisitAll(GpuFacts& facts, Visit visit) {
  VisitGpu(facts, visit);
}
template <typename Visit>
void VisitAll(FolderFacts& facts, Visit visit) {
  VisitFolder(facts, visit);
}
template <typename Visit>
void VisitAll(PortFacts& facts, Visit visit) {
  VisitPort(facts, visit);
}

// Writes facts into an object.
class Writer {
 public:
  explicit Writer(Json* json) : json_(*json) {}
  template <typename T>
  void operator()(const char* name, const T& value) {
    json_[name] = value;
  }
  template <typename T>
  void operator()(const char* name, const std::vector<T>& values) {
    Json list = Json::array();
    for (const T& value : values) {
      list.push_back(Json::object());
      VisitAll(value, Writer(&list.back()));
    }
    json_[name] = std::move(list);
  }

 private:
  Json& json_;
};

// Reads facts from an object; keeps the first error.
class Reader {
 public:
  Reader(const Json& json, std::string where, absl::Status* status)
      : json_(json), where_(std::move(where)), status_(*status) {}

  void operator()(const char* name, std::string& value) {
    if (const Json* found = Find(name, &Json::is_string, "a string"))
      value = found->get<std::string>();
  }
  void operator()(const char* name, bool& value) {
    if (const Json* found = Find(name, &Json::is_boolean, "true or false"))
      value = found->get<bool>();
  }
  void operator()(const char* name, uint64_t& value) {
    if (const Json* found = Find(name, &Json::is_number_unsigned, "a whole number"))
      value = found->get<uint64_t>();
  }
  void operator()(const char* name, double& value) {
    if (const Json* found = Find(name, &Json::is_number, "a number")) value = found->get<double>();
  }
  template <typename T>
  void operator()(const char* name, std::vector<T>& values) {
    const Json* found = Find(name, &Json::is_array, "a list");
    if (found == nullptr) return;
    for (const Json& one : *found) {
      values.emplace_back();
      Reader below(one, absl::StrCat(where_, name, "."), &status_);
      VisitAll(values.back(), std::ref(below));
      below.RefuseUnknown();
    }
  }
  void RefuseUnknown() {
    if (!json_.is_object()) return Fail(absl::StrCat(where_, " must be objects"));
    for (const auto& item : json_.items()) {
      if (!known_.contains(item.key()))
        Fail(absl::StrCat("there is no fact '", where_, item.key(), "'"));
    }
  }

 private:
  const Json* Find(const char* name, bool (Json::*is)() const noexcept, const char* type) {
    known_.insert(name);
    if (!json_.is_object()) return nullptr;
    const auto found = json_.find(name);
    if (found == json_.end()) return nullptr;
    if (((*found).*is)()) return &*found;
    Fail(absl::StrCat("the fact '", where_, name, "' must be ", type));
    return nullptr;
  }
  void Fail(const std::string& why) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(why);
  }

  const Json& json_;
  const std::string where_;
  absl::Status& status_;
  std::set<std::string> known_;
};

}  // namespace

nlohmann::ordered_json JsonOf(const MachineFacts& facts) {
  Json json = Json::object();
  VisitMachine(facts, Writer(&json));
  return json;
}

absl::StatusOr<MachineFacts> FactsOf(const std::string& text) {
  if (JsonDepth(text) > kMaxDepth)
    return absl::InvalidArgumentError("the facts are nested too deeply");
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return absl::InvalidArgumentError("the facts are not a JSON object");
  MachineFacts facts;
  absl::Status status;
  Reader reader(json, "", &status);
  VisitMachine(facts, std::ref(reader));
  reader.RefuseUnknown();
  CISTERN_RETURN_IF_ERROR(status);
  return facts;
}

}  // namespace cistern::cli
