# One interface target carries every flag of the house; each target of the project links it.
option(TGD_WERROR "Warnings are errors" ON)
set(TGD_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined or thread")
option(TGD_LIBFUZZER "Link the fuzz entries with libFuzzer (clang only), see tests/fuzz/run" OFF)

add_library(tgd_flags INTERFACE)
target_include_directories(tgd_flags INTERFACE ${CMAKE_SOURCE_DIR})
set(warnings -Wall -Wextra -Wpedantic -Wno-restrict -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wunused-result -Wvla)
if(TGD_WERROR)
  list(APPEND warnings -Werror)
endif()
target_compile_options(tgd_flags INTERFACE
  # -Wno-restrict: g++ 12 reports string concatenations that are in order (GCC bug 105651).
  # Replicas agree bit for bit only if the compiler contracts nothing on its own.
  "$<$<COMPILE_LANGUAGE:C,CXX>:${warnings};-ffp-contract=off;-fno-fast-math>")
# Before that the compiler need not look for memory to free: a tenth of the time of the largest sources.
target_compile_options(tgd_flags INTERFACE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576>")
if(TGD_SANITIZE)
  target_compile_options(tgd_flags INTERFACE -fsanitize=${TGD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(tgd_flags INTERFACE -fsanitize=${TGD_SANITIZE})
  if(NOT TGD_LIBFUZZER)
    # These two checks cost a quarter of the time to compile. A null pointer ends the program without one. Both stay
    # in kernels/, where bytes are cast to wider types.
    target_compile_options(tgd_flags INTERFACE
      $<$<NOT:$<STREQUAL:$<TARGET_PROPERTY:SOURCE_DIR>,${CMAKE_SOURCE_DIR}/kernels>>:-fno-sanitize=null,alignment>)
  endif()
endif()
if(TGD_LIBFUZZER)
  # clang as a guest: it does not know all of g++'s warnings.
  target_compile_options(tgd_flags INTERFACE -fsanitize=fuzzer-no-link -Wno-unknown-warning-option)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-include ${CMAKE_SOURCE_DIR}/cmake/clang16_strings.h>")
endif()

# Sources of a target are compiled eight at a time, as one unit: the headers that they share are read once, and it takes
# half the time. So names in their unnamed namespaces must differ, or a source says SKIP_UNITY_BUILD_INCLUSION. Without units a changed source is compiled sooner.
option(TGD_UNITS "Compile eight sources at a time" ON)
function(tgd_in_units)
  foreach(target IN LISTS ARGN)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ${TGD_UNITS} UNITY_BUILD_BATCH_SIZE 8)
    # g++ takes what a unit includes for headers.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  endforeach()
endfunction()

# Every object may be rebuilt from a cache shared by all checkouts.
find_program(TGD_CCACHE ccache)
if(TGD_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TGD_CCACHE})
endif()

# -O3 pays in kernels/ alone (its CMakeLists asks for it); elsewhere it costs build time.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
