# cuDNN as the target cudnn: beside the CUDA toolkit, or where the system has it.
find_path(Cudnn_INCLUDE_DIR cudnn_version.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(Cudnn_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR})
if(Cudnn_INCLUDE_DIR)
  file(STRINGS ${Cudnn_INCLUDE_DIR}/cudnn_version.h cudnn_version_lines REGEX "#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) +[0-9]+")
  list(TRANSFORM cudnn_version_lines REPLACE "[^0-9]+" "")
  string(REPLACE ";" "." Cudnn_VERSION "${cudnn_version_lines}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Cudnn REQUIRED_VARS Cudnn_LIBRARY Cudnn_INCLUDE_DIR VERSION_VAR Cudnn_VERSION)

if(Cudnn_FOUND AND NOT TARGET cudnn)
  add_library(cudnn UNKNOWN IMPORTED)
  set_target_properties(cudnn PROPERTIES IMPORTED_LOCATION ${Cudnn_LIBRARY}
                                         INTERFACE_INCLUDE_DIRECTORIES ${Cudnn_INCLUDE_DIR})
endif()
