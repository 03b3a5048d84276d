# Defines cistern_hardening: what makes an error in memory stop a released program instead of being used against it.
# cistern_options includes it, so it applies to all that is installed; test/scripts/hardening_test.py reads it back from
# the programs.
#
# - Position-independent programs, whose addresses differ from run to run.
# - Full RELRO: symbols are bound at the start, and the tables that hold them are then read-only.
# - _FORTIFY_SOURCE: calls of libc that write past a buffer whose size the compiler knows end the program.
# - Stack protector: a function whose return address was overwritten ends the program instead of returning.
# - Stack clash protection: a large frame touches every page, so that it cannot step over the guard page.
#
# Left out: targets with CISTERN_UNHARDENED (test programs, which nobody installs), presets without optimization, for
# which libc has no fortified calls, and sanitizers, which check more. nvcc compiles kernels, and the host code that
# launches them, without the last three.
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

add_library(cistern_hardening INTERFACE)
if(NOT CISTERN_SANITIZE)
  set(hardened "$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>,$<NOT:$<BOOL:$<TARGET_PROPERTY:CISTERN_UNHARDENED>>>>")
  # Distributions set another level by default, hence the -U.
  target_compile_options(cistern_hardening INTERFACE
    "$<${hardened}:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3;-fstack-protector-strong>")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # clang has it for some processors only
    target_compile_options(cistern_hardening INTERFACE "$<${hardened}:-fstack-clash-protection>")
  endif()
  target_link_options(cistern_hardening INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endif()
