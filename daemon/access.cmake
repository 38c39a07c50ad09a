# What every port of a node stands on: socket options, keys, who may connect, what a connection may cost.
add_library(tgd_access STATIC
  ${CMAKE_CURRENT_LIST_DIR}/access/config_problems.cpp
  ${CMAKE_CURRENT_LIST_DIR}/access/accepted_connections.cpp
  ${CMAKE_CURRENT_LIST_DIR}/access/connection.cpp
  ${CMAKE_CURRENT_LIST_DIR}/access/zap_authenticator.cpp
  ${CMAKE_CURRENT_LIST_DIR}/access/keyring.cpp
  ${CMAKE_CURRENT_LIST_DIR}/access/name_watch.cpp
  ${CMAKE_CURRENT_LIST_DIR}/access/networks.cpp
  ${CMAKE_CURRENT_LIST_DIR}/access/user.cpp)
target_link_libraries(tgd_access
  PUBLIC tgd_base tgd_schema tgd_flags
  PRIVATE cppzmq Threads::Threads)
