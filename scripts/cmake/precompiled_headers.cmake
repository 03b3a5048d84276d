# Headers that most files include are parsed once for each kind of target, which saves a third of all compile
# time. A file still includes all that it uses: preset dev builds without this.
option(CISTERN_PRECOMPILE "Use precompiled headers" ON)

set(cistern_common_headers
  <algorithm> <atomic> <cmath> <cstdint> <cstring> <filesystem> <functional> <map> <memory> <optional>
  <random> <set> <string> <thread> <utility> <vector>
  <absl/status/status.h> <absl/status/statusor.h> <absl/strings/match.h> <absl/strings/numbers.h>
  <absl/strings/str_cat.h> <absl/strings/str_format.h> <absl/strings/str_join.h>
  <absl/strings/str_split.h> <absl/synchronization/mutex.h> <absl/time/clock.h> <absl/time/time.h>
  <absl/types/span.h>)

# cistern_add_headers(KIND TYPE HEADERS...): cistern_headers_KIND compiles the headers with the options of
# its kind. TYPE is OBJECT for libraries or EXECUTABLE (gcc compiles those with -fPIE).
function(cistern_add_headers kind type)
  set(source "${PROJECT_BINARY_DIR}/headers/${kind}.cc")
  file(CONFIGURE OUTPUT "${source}" CONTENT "int main() { return 0; }\n")
  if(type STREQUAL EXECUTABLE)
    add_executable(cistern_headers_${kind} EXCLUDE_FROM_ALL "${source}")
  else()
    add_library(cistern_headers_${kind} OBJECT EXCLUDE_FROM_ALL "${source}")
  endif()
  target_link_libraries(cistern_headers_${kind} PRIVATE cistern_options absl::statusor absl::strings
    absl::str_format absl::synchronization absl::time absl::span)
  target_precompile_headers(cistern_headers_${kind} PRIVATE ${ARGN})
endfunction()

# cistern_use_headers(TARGET KIND): the target reuses the headers of library, fast (-Og), program or test (-Og). Targets
# of the last kind are not hardened (hardening.cmake).
function(cistern_use_headers target kind)
  string(COMPARE EQUAL "${kind}" test is_test)
  set_target_properties(${target} PROPERTIES CISTERN_UNHARDENED ${is_test})
  if(CISTERN_PRECOMPILE)
    set_target_properties(${target} PROPERTIES PRECOMPILE_HEADERS_REUSE_FROM cistern_headers_${kind})
  endif()
endfunction()

if(CISTERN_PRECOMPILE)
  cistern_add_headers(library OBJECT ${cistern_common_headers})
  cistern_add_headers(fast OBJECT ${cistern_common_headers})
  target_compile_options(cistern_headers_fast PRIVATE $<$<CONFIG:Release>:-Og>)
  cistern_add_headers(program EXECUTABLE ${cistern_common_headers})
  if(CISTERN_BUILD_TESTS)
    cistern_add_headers(test EXECUTABLE ${cistern_common_headers} <gtest/gtest.h> <gmock/gmock.h>)
    set_target_properties(cistern_headers_test PROPERTIES CISTERN_UNHARDENED ON)
    target_compile_options(cistern_headers_test PRIVATE $<$<CONFIG:Release>:-Og>)
    target_link_libraries(cistern_headers_test PRIVATE GTest::gtest GTest::gmock)
  endif()
endif()
