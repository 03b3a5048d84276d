#include "cli/doctor/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command/doctor_command.h"
#include "cli/doctor/read_facts.h"
#include "cli/doctor/read_places.h"
#include "cli/terminal/exit_code.h"

namespace cistern::cli {
namespace {

using testing::HasSubstr;

// What is said about the only thing that is not good.
Finding OnlyFault(const std::string& json) {
  const auto facts = FactsOf(json);
  EXPECT_TRUE(facts.ok()) << facts.status();
  std::vector<Finding> faults;
  if (facts.ok()) {
    for (const Finding& finding : Diagnose(*facts)) {
      if (finding.health != Health::kGood) faults.push_back(finding);
    }
  }
  EXPECT_EQ(faults.size(), 1) << json;
  return faults.empty() ? Finding{} : faults[0];
}

TEST(Doctor, FindsNothingWrongWithAGoodMachine) {
  for (const Finding& finding : Diagnose(MachineFacts())) {
    EXPECT_EQ(finding.health, Health::kGood) << finding.subject << ": " << finding.found;
    EXPECT_EQ(finding.fix, "");
  }
  EXPECT_TRUE(ReportOf({}, Diagnose({}), true).outcome.ok());
}

struct Fault {
  const char* facts;
  const char* subject;
  Health health;
  const char* fix;
};

class Faults : public testing::TestWithParam<Fault> {};

TEST_P(Faults, AreNamedWithAFix) {
  const Finding found = OnlyFault(GetParam().facts);
  EXPECT_EQ(found.subject, GetParam().subject);
  EXPECT_EQ(found.health, GetParam().health);
  EXPECT_THAT(found.fix, HasSubstr(GetParam().fix));
}

constexpr Health kWarning = Health::kWarning, kProblem = Health::kProblem;
INSTANTIATE_TEST_SUITE_P(
    Doctor, Faults,
    testing::Values(
        Fault{R"({"missing_instructions": "avx2"})", "processor", kProblem, "CISTERN_ARCH"},
        Fault{R"({"cores": 1})", "processor", kWarning, "2 cores"},
        Fault{R"({"load": 31.5})", "load", kWarning, "top"},
        Fault{R"({"available_bytes": 100000000})", "memory", kProblem, "stop other programs"},
        Fault{R"({"available_bytes": 1500000000})", "memory", kWarning, "cistern plan"},
        Fault{R"({"overcommit": 2})", "overcommit", kWarning, "sysctl vm.overcommit_memory=0"},
        Fault{R"({"huge_pages": "never"})", "huge pages", kWarning, "transparent_hugepage"},
        Fault{R"({"open_files": 1024})", "open files", kWarning, "ulimit -n 65536"},
        Fault{R"({"open_files": 256})", "open files", kProblem, "LimitNOFILE"},
        Fault{R"({"processes": 100})", "threads", kProblem, "ulimit -u"},
        Fault{R"({"file_bytes": 1048576})", "file size", kProblem, "ulimit -f unlimited"},
        Fault{R"({"address_bytes": 1073741824})", "address space", kWarning, "ulimit -v unlimited"},
        Fault{R"({"unix_seconds": 3600})", "clock", kProblem, "timedatectl"},
        Fault{R"({"clock_synchronized": false})", "clock", kWarning, "set-ntp"},
        Fault{R"({"clock_source": "hpet"})", "clock", kWarning, "clocksource"},
        Fault{R"({"parquet": ""})", "versions", kWarning, "install_deps"},
        Fault{R"({"has_gpu_driver": true})", "GPU", kWarning, "CUDA"},
        Fault{R"({"has_gpu_driver": true, "is_built_for_gpus": true, "no_gpu": "driver 11.0"})",
              "GPU", kProblem, "driver"},
        Fault{R"({"is_built_for_gpus": true, "gpus": [{"name": "T4", "trouble": "is 7.5"}]})",
              "GPU", kProblem, "--device cpu"},
        Fault{R"({"has_localhost": false})", "localhost", kProblem, "/etc/hosts"},
        Fault{R"({"ports": [{"port": 7700, "trouble": "taken"}]})", "port 7700", kWarning,
              "ss -ltnp"},
        Fault{R"({"ports": [{"port": 7700, "named": true, "trouble": "taken"}]})", "port 7700",
              kProblem, "--port"},
        Fault{R"({"ports": [{"port": 40000}]})", "port 40000", kWarning,
              "ip_local_reserved_ports=40000"},
        Fault{R"({"folders": [{"path": "/d", "trouble": "read-only"}]})", "disk /d", kProblem,
              "install -d"},
        Fault{R"({"folders": [{"path": "/d", "free_bytes": 1000}]})", "disk /d", kProblem,
              "remove files"},
        Fault{R"({"folders": [{"path": "/d", "free_files": 3}]})", "disk /d", kProblem,
              "remove files"},
        Fault{R"({"folders": [{"path": "/d", "sync_ms": 200}]})", "disk /d", kWarning, "SSD"},
        Fault{R"({"folders": [{"path": "/d", "is_data_folder": true, "file_system": "tmpfs"}]})",
              "data /d", kWarning, "disk"},
        Fault{
            R"({"folders": [{"path": "/d", "is_data_folder": true, "state_trouble": "checksum"}]})",
            "commits /d", kProblem, "cistern verify /d"}));

TEST(Doctor, ReportTellsByItsOutcome) {
  MachineFacts facts;
  facts.cores = 1;
  EXPECT_TRUE(ReportOf(facts, Diagnose(facts), false).outcome.ok());
  EXPECT_EQ(ExitCodeOf(ReportOf(facts, Diagnose(facts), true).outcome), ExitCode::kFailed);
  facts.open_files = 10;
  const Report report = ReportOf(facts, Diagnose(facts), false);
  EXPECT_EQ(ExitCodeOf(report.outcome), ExitCode::kFailed);
  EXPECT_EQ(report.json["problems"], 1);
  EXPECT_EQ(report.json["warnings"], 1);
  EXPECT_THAT(report.text, HasSubstr("fix: raise it: ulimit -n 65536"));
}

TEST(MachineFacts, ReturnFromJson) {
  MachineFacts facts = ReadMachine();
  facts.folders = {ReadFolder(testing::TempDir(), true)};
  facts.ports = {ReadPort(7700, true)};
  const auto again = FactsOf(JsonOf(facts).dump());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(JsonOf(*again), JsonOf(facts));
}

TEST(MachineFacts, RefuseWhatTheyDoNotKnow) {
  EXPECT_THAT(FactsOf("[]").status().message(), HasSubstr("not a JSON object"));
  EXPECT_THAT(FactsOf(R"({"coers": 1})").status().message(), HasSubstr("no fact 'coers'"));
  EXPECT_THAT(FactsOf(R"({"cores": -1})").status().message(),
              HasSubstr("'cores' must be a whole number"));
  EXPECT_THAT(FactsOf(R"({"ports": [{"port": "x"}]})").status().message(),
              HasSubstr("'ports.port' must be"));
  EXPECT_THAT(FactsOf(R"({"ports": [7]})").status().message(), HasSubstr("must be objects"));
}

TEST(ReadFolder, SaysWhyAFolderCannotBeWritten) {
  EXPECT_EQ(ReadFolder(testing::TempDir() + "/not/yet", false).trouble, "");
  EXPECT_THAT(ReadFolder("/dev/null", false).trouble, HasSubstr("is not a folder"));
  EXPECT_THAT(ReadFolder("/proc", false).trouble, HasSubstr("cannot create a file"));
}

}  // namespace
}  // namespace cistern::cli
