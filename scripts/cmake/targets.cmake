# Defines cistern_library, cistern_program and cistern_test, which create all targets of the project.

# Compile options for Cistern's own code only: warnings, sanitizers and target architecture.
if(CISTERN_WERROR STREQUAL "AUTO")
  # A newer compiler's new warnings must not stop a user's build.
  set(CISTERN_WERROR OFF)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    set(CISTERN_WERROR ON)
  endif()
endif()
include(hardening)
add_library(cistern_options INTERFACE)
target_link_libraries(cistern_options INTERFACE cistern_hardening)
target_include_directories(cistern_options INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_options(cistern_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wno-unused-parameter -fno-math-errno>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${CISTERN_WERROR}>>:-Werror>)
if(CISTERN_ARCH AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(cistern_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-march=${CISTERN_ARCH}>)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(cistern_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wthread-safety>)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc collects garbage only from 512 MB on, which saves 8 % of compile time.
  target_compile_options(cistern_options INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-expand=100 --param ggc-min-heapsize=524288>")
endif()
if(CISTERN_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # With a sanitizer, gcc 12 reports false uninitialized variables.
  target_compile_options(cistern_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
endif()
foreach(sanitizer IN LISTS CISTERN_SANITIZE)
  target_compile_options(cistern_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${sanitizer} -fno-omit-frame-pointer>)
  target_link_options(cistern_options INTERFACE -fsanitize=${sanitizer})
endforeach()
if("undefined" IN_LIST CISTERN_SANITIZE)
  # By default undefined behaviour is only printed, and a test that shows it passes.
  target_compile_options(cistern_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=undefined>)
endif()
if("thread" IN_LIST CISTERN_SANITIZE)
  include(thread_sanitizer)
endif()

# The same threads and OpenMP options for all files, so that all of them can use the same precompiled headers.
target_compile_options(cistern_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-pthread>)
if("thread" IN_LIST CISTERN_SANITIZE)
  # gcc's OpenMP runtime is not instrumented, and the thread sanitizer reports false races in it.
  # So loops run on one thread.
  set_target_properties(OpenMP::OpenMP_CXX PROPERTIES INTERFACE_COMPILE_OPTIONS -fopenmp-simd)
else()
  target_compile_options(cistern_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${OpenMP_CXX_FLAGS}>)
endif()
include(precompiled_headers)
if(CISTERN_PRECOMPILE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc forgets that precompiled headers are the system's, and reports false errors in them.
  target_compile_options(cistern_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>)
endif()

# Compiles a target with little optimization, in a quarter less time than -O1. For code that no training step runs.
function(cistern_compile_fast target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Og>)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    cistern_use_headers(${target} test)
  else()
    cistern_use_headers(${target} fast)
  endif()
endfunction()

# Compiles the files of a target forty at a time, in less than half of the time. Names in the anonymous namespaces of a
# folder must then differ; ALONE lists files whose names repeat others' on purpose. Presets dev, asan, tsan
# and clang compile each file alone.
option(CISTERN_JOIN_FILES "Compile several files of a folder at once" OFF)
function(cistern_join_files target)
  if(CISTERN_JOIN_FILES)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 40)
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# cistern_library(name FILES ... ALONE ... USES ...): static library cistern_<name>; USES lists targets.
function(cistern_library name)
  cmake_parse_arguments(arg "" "" "FILES;ALONE;USES" ${ARGN})
  add_library(cistern_${name} STATIC ${arg_FILES} ${arg_ALONE})
  cistern_join_files(cistern_${name} ${arg_ALONE})
  target_link_libraries(cistern_${name} PUBLIC cistern_options ${arg_USES})
  cistern_use_headers(cistern_${name} library)
endfunction()

# cistern_program(name FILES ... USES ...): executable <build>/bin/<name>.
function(cistern_program name)
  cmake_parse_arguments(arg "" "" "FILES;USES" ${ARGN})
  add_executable(${name} ${arg_FILES})
  target_link_libraries(${name} PRIVATE cistern_options ${arg_USES})
  cistern_use_headers(${name} program)
endfunction()

# cistern_test(name LABELS unit FILES a_test.cc ... ALONE b_test.cc ... USES ...): one gtest program, one ctest entry,
# with the label unit unless LABELS names another (unit, integration, golden, fuzz, slow).
function(cistern_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "LABELS;FILES;ALONE;USES" ${ARGN})
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_executable(${name} ${arg_FILES} ${arg_ALONE})
  cistern_join_files(${name} ${arg_ALONE})
  cistern_compile_fast(${name})
  target_link_libraries(${name} PRIVATE cistern_options ${arg_USES} GTest::gtest GTest::gmock
    GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
    ENVIRONMENT "CISTERN_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
endfunction()
