# The one place that asks whether CUDA is here: TGD_HAS_CUDA says whether the module tgd-cuda.so is built. tgd itself is the
# same program with and without it: it loads the module while it runs (engine/accelerator.h).
set(TGD_CUDA AUTO CACHE STRING "Build the CUDA module: ON, OFF, or AUTO = where toolkit and cuDNN are found")
set_property(CACHE TGD_CUDA PROPERTY STRINGS AUTO ON OFF)
set(TGD_HAS_CUDA OFF)
if(TGD_CUDA AND NOT TGD_SANITIZE)  # nvcc does not know the sanitizers; what is shared with the host is tested there
  include(CheckLanguage)
  check_language(CUDA)
  # CMake 3.25 calls nvToolsExt deprecated for projects that ask for 3.25, and fails where a toolkit has it no more.
  set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24)
  find_package(CUDAToolkit 12)
  set(CMAKE_MINIMUM_REQUIRED_VERSION 3.25)
  find_package(Cudnn 9)
  if(CMAKE_CUDA_COMPILER AND CUDAToolkit_FOUND AND Cudnn_FOUND)
    set(TGD_HAS_CUDA ON)
  elseif(TGD_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TGD_CUDA=ON needs nvcc, the CUDA toolkit (12 or later) and cuDNN 9; found: nvcc "
                        "'${CMAKE_CUDA_COMPILER}', toolkit '${CUDAToolkit_VERSION}', cuDNN '${Cudnn_LIBRARY}'")
  endif()
endif()

if(TGD_HAS_CUDA)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    # Turing to Blackwell, and PTX for what comes later. Toolkits before 12.8 know fewer.
    set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 86-real 89-real 90-real)
    if(CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.8)
      list(APPEND CMAKE_CUDA_ARCHITECTURES 100-real 103-real 120)
    else()
      list(APPEND CMAKE_CUDA_ARCHITECTURES 90-virtual)
    endif()
    if(CUDAToolkit_VERSION VERSION_GREATER_EQUAL 13.0)
      list(APPEND CMAKE_CUDA_ARCHITECTURES 110-real)
    endif()
  endif()
  set(CMAKE_CUDA_FLAGS_RELEASE "-O3 -DNDEBUG")
  enable_language(CUDA)
  # CMake 3.25 does not know that nvcc has C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  if(TGD_CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${TGD_CCACHE})
  endif()
  add_library(tgd_cuda_flags INTERFACE)
  target_include_directories(tgd_cuda_flags INTERFACE ${CMAKE_SOURCE_DIR})
  # --fmad=false: as on the host, the compiler contracts nothing on its own.
  target_compile_options(tgd_cuda_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;--Werror=all-warnings;-Xcompiler=-Wall,-Wextra,-Wno-restrict,-Wshadow>")
  target_link_libraries(tgd_cuda_flags INTERFACE CUDA::cudart_static)
endif()
