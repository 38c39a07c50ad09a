# The Debian packages, made by CPack: deploy/package. tgd-cuda is one of them where CUDA and cuDNN were found.
# Beside this file: what debhelper would have written.
set(changelog ${CMAKE_CURRENT_LIST_DIR}/changelog)
file(STRINGS ${changelog} newest LIMIT_COUNT 1)
if(NOT newest MATCHES "^tgd \\(${PROJECT_VERSION}\\) ")
  message(FATAL_ERROR "${changelog} begins with \"${newest}\", but this is version ${PROJECT_VERSION}: add its entry")
endif()
execute_process(COMMAND gzip -9nc ${changelog} OUTPUT_FILE ${CMAKE_CURRENT_BINARY_DIR}/changelog.gz
  COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${changelog} ${CMAKE_CURRENT_SOURCE_DIR}/tgd.conf)

# The sample configuration, with the folder that the service may write.
file(READ tgd.conf sample)
string(REPLACE "\nstate-dir = tgd-state\n" "\nstate-dir = /var/lib/tgd\n" installed "${sample}")
string(REPLACE "`tgd --config tgd.conf`" "`systemctl enable --now tgd`" installed "${installed}")
string(REPLACE "`tgd --config tgd.conf --check-config`" "`tgd --config /etc/tgd/tgd.conf --check-config`" installed "${installed}")
if(NOT installed MATCHES "/var/lib/tgd" OR NOT installed MATCHES "enable --now" OR NOT installed MATCHES "config /etc/tgd")
  message(FATAL_ERROR "deploy/tgd.conf has other words than deploy/debian/packages.cmake replaces")
endif()
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/tgd.conf "${installed}")

install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tgd.conf DESTINATION /etc/tgd COMPONENT tgd)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/tgd.service DESTINATION /lib/systemd/system COMPONENT tgd)
set(components tgd tgctl)
if(TARGET tgd_cuda)
  list(APPEND components cuda)
  install(FILES ${CMAKE_CURRENT_LIST_DIR}/cuda.conf DESTINATION /lib/systemd/system/tgd.service.d COMPONENT cuda)
endif()
foreach(component IN LISTS components)
  string(REGEX REPLACE "^cuda$" "tgd-cuda" package ${component})
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/changelog.gz ${CMAKE_CURRENT_LIST_DIR}/copyright
    DESTINATION /usr/share/doc/${package} COMPONENT ${component})
endforeach()

set(TGD_MAINTAINER "tgd maintainers <maintainers@tgd.example.org>" CACHE STRING "Of the packages")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT ${TGD_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own, as the first line of its description
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_TGD_PACKAGE_NAME tgd)
set(CPACK_DEBIAN_TGD_PACKAGE_DEPENDS "adduser, init-system-helpers (>= 1.51)")
set(CPACK_DEBIAN_TGD_PACKAGE_RECOMMENDS "tgctl (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_TGD_PACKAGE_CONTROL_EXTRA
  "${CMAKE_CURRENT_LIST_DIR}/conffiles;${CMAKE_CURRENT_LIST_DIR}/postinst;${CMAKE_CURRENT_LIST_DIR}/postrm;${CMAKE_CURRENT_LIST_DIR}/prerm")
set(CPACK_DEBIAN_TGD_DESCRIPTION "node of a mesh that trains neural networks together
tgd runs on each of a handful of ordinary machines that are joined by a
1 Gbit/s switch. Together they train one network: each computes gradients
on its part of every batch, and what travels are ternary gradients. There
is no server, and no machine is special.
.
This package has the daemon and its service, which is not started before it is
configured. Runs are started and watched with tgctl.")
set(CPACK_DEBIAN_TGCTL_PACKAGE_NAME tgctl)
set(CPACK_DEBIAN_TGCTL_PACKAGE_SUGGESTS "tgd (= ${PROJECT_VERSION}), bash-completion")
set(CPACK_DEBIAN_TGCTL_DESCRIPTION "starts, watches and ends training runs of a mesh of tgd nodes
tgctl asks any one node of a mesh, on this machine or another one: it
starts a run of a job file, shows nodes, runs and logs, stops a run,
fetches the model, and predicts what a job would do on another mesh.
.
This package also has sample job files, and completions for bash and zsh.")
set(CPACK_DEBIAN_CUDA_PACKAGE_NAME tgd-cuda)
set(CPACK_DEBIAN_CUDA_PACKAGE_SECTION contrib/science)
# cuDNN and cuBLAS are in no package of Debian; dpkg-shlibdeps would stop at them. Its other libraries are tgd's as well.
set(CPACK_DEBIAN_CUDA_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "tgd (= ${PROJECT_VERSION}), libc6, libgcc-s1, libstdc++6")
set(CPACK_DEBIAN_CUDA_PACKAGE_CONTROL_EXTRA "${CMAKE_CURRENT_LIST_DIR}/cuda/postinst;${CMAKE_CURRENT_LIST_DIR}/cuda/postrm")
set(CPACK_DEBIAN_CUDA_DESCRIPTION "engine for NVIDIA GPUs of tgd, a node of a training mesh
With this module a tgd trains on an NVIDIA GPU. It is loaded when tgd
starts; engine, device and math in tgd.conf choose.
.
It needs three things that Debian does not have, from NVIDIA's package archive
for Debian: the driver, cuDNN 9 and cuBLAS, of the CUDA version that this
package was built with (tgd --version shows all of them). Where one of them is
missing, tgd names it, and trains on the processor unless engine = cuda.")
include(CPack)
