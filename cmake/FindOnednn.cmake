# oneDNN as the target onednn. Its own dnnl-config.cmake asks for OpenCL's headers, which a CPU build does not use.
find_path(Onednn_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(Onednn_LIBRARY dnnl)
if(Onednn_INCLUDE_DIR AND EXISTS ${Onednn_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h)
  file(STRINGS ${Onednn_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h onednn_version_lines
       REGEX "#define DNNL_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
  list(TRANSFORM onednn_version_lines REPLACE "[^0-9]+" "")
  string(REPLACE ";" "." Onednn_VERSION "${onednn_version_lines}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Onednn REQUIRED_VARS Onednn_LIBRARY Onednn_INCLUDE_DIR VERSION_VAR Onednn_VERSION)

if(Onednn_FOUND AND NOT TARGET onednn)
  add_library(onednn UNKNOWN IMPORTED)
  set_target_properties(onednn PROPERTIES IMPORTED_LOCATION ${Onednn_LIBRARY}
                                          INTERFACE_INCLUDE_DIRECTORIES ${Onednn_INCLUDE_DIR})
endif()
