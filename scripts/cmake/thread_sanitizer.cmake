# Links test/thread_sanitizer/absl_locks.cc into every program of the tsan preset; that file explains
# why.
find_path(CISTERN_ABSL_INCLUDE absl/base/options.h REQUIRED)
file(STRINGS "${CISTERN_ABSL_INCLUDE}/absl/base/options.h" options
  REGEX "^#define ABSL_OPTION_(USE_INLINE_NAMESPACE|INLINE_NAMESPACE_NAME)")
set(mangled 4absl)
if(options MATCHES "USE_INLINE_NAMESPACE 1" AND options MATCHES "INLINE_NAMESPACE_NAME ([a-z0-9_]+)")
  string(LENGTH "${CMAKE_MATCH_1}" length)
  string(APPEND mangled "${length}${CMAKE_MATCH_1}")
endif()

add_library(cistern_absl_locks STATIC "${PROJECT_SOURCE_DIR}/test/thread_sanitizer/absl_locks.cc")
target_compile_definitions(cistern_absl_locks PRIVATE CISTERN_ABSL=${mangled})
target_compile_options(cistern_absl_locks PRIVATE -fsanitize=thread)
# Shared libraries refer to these symbols, which the project's hidden visibility would keep from them.
set_target_properties(cistern_absl_locks PROPERTIES CXX_VISIBILITY_PRESET default)
target_link_libraries(cistern_absl_locks PUBLIC absl::synchronization absl::time)
target_link_libraries(cistern_options INTERFACE cistern_absl_locks)
# Forces the linker to take the object from the archive even if only a shared library needs it.
target_link_options(cistern_options INTERFACE -Wl,--undefined=__wrap__ZN${mangled}5Mutex4LockEv)
foreach(method
    5Mutex4LockEv 5Mutex10ReaderLockEv 5Mutex6UnlockEv 5Mutex12ReaderUnlockEv 5Mutex7TryLockEv
    5Mutex5AwaitERKNS0_9ConditionE
    5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE
    5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE
    7CondVar4WaitEPNS0_5MutexE
    7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE
    7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE
    15BlockingCounter14DecrementCountEv 15BlockingCounter4WaitEv 12Notification6NotifyEv)
  target_link_options(cistern_options INTERFACE -Wl,--wrap=_ZN${mangled}${method})
endforeach()
foreach(method
    12Notification19WaitForNotificationEv
    12Notification30WaitForNotificationWithTimeoutENS0_8DurationE)
  target_link_options(cistern_options INTERFACE -Wl,--wrap=_ZNK${mangled}${method})
endforeach()
