#include "cli/terminal/openmp_defaults.h"

#include <gmock/gmock.h>

#include <map>

namespace cistern::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

using Variables = std::map<std::string, std::string>;

MachineLimits Machine(int cores, bool of_container) {
  MachineLimits limits;
  limits.cores = cores;
  limits.cores_are_of_container = of_container;
  return limits;
}

// Without GOMP_SPINCOUNT, which each process is given.
std::vector<OpenMpSetting> SettingsOf(Variables variables, bool of_container = false,
                                      int cores = 6) {
  variables.emplace("GOMP_SPINCOUNT", "5");
  return OpenMpSettingsOf(
      [&variables](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      Machine(cores, of_container));
}

TEST(OpenMpDefaults, LetThreadsSpinForAShortTimeUnlessTheUserDecides) {
  const auto none = [](const char*) -> const char* { return nullptr; };
  const std::vector<OpenMpSetting> settings = OpenMpSettingsOf(none, Machine(6, false));
  ASSERT_EQ(settings.size(), 1u);
  EXPECT_EQ(settings[0].name, "GOMP_SPINCOUNT");
  EXPECT_EQ(settings[0].note, "");
  EXPECT_THAT(SettingsOf({}), IsEmpty());
}

TEST(OpenMpDefaults, GiveAContainerWithAQuotaOneThreadPerCoreOfIt) {
  const std::vector<OpenMpSetting> settings = SettingsOf({}, true);
  ASSERT_EQ(settings.size(), 1u);
  EXPECT_EQ(settings[0].name + "=" + settings[0].value, "OMP_NUM_THREADS=6");
  EXPECT_THAT(SettingsOf({{"OMP_NUM_THREADS", "3"}}, true), IsEmpty());
}

TEST(OpenMpDefaults, ReplaceANumberOfThreadsWithWhichTheLibraryCrashes) {
  for (const char* threads : {"99999", "1025", " 2000 ", "4,99999", "99999999999999999999999"}) {
    const std::vector<OpenMpSetting> settings = SettingsOf({{"OMP_NUM_THREADS", threads}});
    ASSERT_EQ(settings.size(), 1u) << threads;
    EXPECT_EQ(settings[0].name + "=" + settings[0].value, "OMP_NUM_THREADS=6");
    EXPECT_THAT(settings[0].note, HasSubstr(threads));
  }
  // The library reports and ignores what is no number.
  for (const char* threads : {"1", "1024", "4,2", "", "0", "-1", "all", "1e9"}) {
    EXPECT_THAT(SettingsOf({{"OMP_NUM_THREADS", threads}}), IsEmpty()) << threads;
  }
}

// Else the program would execute itself for ever.
TEST(OpenMpDefaults, AreAcceptedByTheProgramThatIsExecutedAgain) {
  const std::vector<OpenMpSetting> settings =
      SettingsOf({{"OMP_NUM_THREADS", "99999"}}, true, 4096);
  ASSERT_EQ(settings.size(), 1u);
  EXPECT_THAT(SettingsOf({{"OMP_NUM_THREADS", settings[0].value}}, true, 4096), IsEmpty());
}

TEST(OpenMpDefaults, ReplaceStacksWithWhichTheLibraryCannotStartThreads) {
  for (const char* name : {"OMP_STACKSIZE", "GOMP_STACKSIZE"}) {
    for (const char* stack :
         {"16", "16k", "127 K", "131071B", "999999999", "2G", "99999999999999G"}) {
      const std::vector<OpenMpSetting> settings = SettingsOf({{name, stack}});
      ASSERT_EQ(settings.size(), 1u) << stack;
      EXPECT_EQ(settings[0].name, name);
      EXPECT_EQ(settings[0].value, "");
      EXPECT_THAT(settings[0].note, HasSubstr(stack));
    }
    for (const char* stack : {"128", "131072B", " 8 m ", "1G", "", "K", "large", "-1", "1.5M"}) {
      EXPECT_THAT(SettingsOf({{name, stack}}), IsEmpty()) << stack;
    }
  }
}

}  // namespace
}  // namespace cistern::cli
