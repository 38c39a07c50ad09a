# The two Debian packages, made by CPack: deploy/package. Beside this file: what debhelper would have written.
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
foreach(package tgd tgctl)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/changelog.gz ${CMAKE_CURRENT_LIST_DIR}/copyright
    DESTINATION /usr/share/doc/${package} COMPONENT ${package})
endforeach()

set(TGD_MAINTAINER "tgd maintainers <maintainers@tgd.example.org>" CACHE STRING "Of the packages")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT ${TGD_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own, as the first line of its description
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL tgd tgctl)
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
include(CPack)
