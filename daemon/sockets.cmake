# What every port of a node stands on: socket options, keys, who may connect, what a connection may cost.
add_library(tgd_sockets STATIC
  ${CMAKE_CURRENT_LIST_DIR}/sockets/connections.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sockets/dial.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sockets/doorkeeper.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sockets/keyring.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sockets/name_watch.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sockets/networks.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sockets/user.cpp)
target_link_libraries(tgd_sockets
  PUBLIC tgd_base tgd_schema tgd_flags
  PRIVATE cppzmq Threads::Threads)
