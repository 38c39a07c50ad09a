# The control port and the runs on disk.
add_library(tgd_control STATIC
  ${CMAKE_CURRENT_LIST_DIR}/control/control_server.cpp
  ${CMAKE_CURRENT_LIST_DIR}/control/control_sockets.cpp
  ${CMAKE_CURRENT_LIST_DIR}/control/merge.cpp
  ${CMAKE_CURRENT_LIST_DIR}/control/pending_requests.cpp
  ${CMAKE_CURRENT_LIST_DIR}/simulate/recorded_run.cpp
  ${CMAKE_CURRENT_LIST_DIR}/step/threads/job_queue.cpp
  ${CMAKE_CURRENT_LIST_DIR}/store/artefacts.cpp
  ${CMAKE_CURRENT_LIST_DIR}/store/checkpoints.cpp
  ${CMAKE_CURRENT_LIST_DIR}/store/directory_id.cpp
  ${CMAKE_CURRENT_LIST_DIR}/store/recovery_points.cpp
  ${CMAKE_CURRENT_LIST_DIR}/store/unsaved_states.cpp
  ${CMAKE_CURRENT_LIST_DIR}/store/line_file.cpp
  ${CMAKE_CURRENT_LIST_DIR}/store/retention.cpp
  ${CMAKE_CURRENT_LIST_DIR}/store/run_files.cpp
  ${CMAKE_CURRENT_LIST_DIR}/store/run_index.cpp
  ${CMAKE_CURRENT_LIST_DIR}/store/run_record.cpp
  ${CMAKE_CURRENT_LIST_DIR}/store/run_history.cpp
  ${CMAKE_CURRENT_LIST_DIR}/store/run_store.cpp
  ${CMAKE_CURRENT_LIST_DIR}/store/saved_arrays.cpp
  ${CMAKE_CURRENT_LIST_DIR}/store/state_facts.cpp
  ${CMAKE_CURRENT_LIST_DIR}/store/view_interval.cpp
  ${CMAKE_CURRENT_LIST_DIR}/store/vote_file.cpp)
target_link_libraries(tgd_control
  PUBLIC tgd_flags tgd_base tgd_schema tgd_daemon_core tgd_access
  PRIVATE tgd_engine cppzmq nlohmann_json::nlohmann_json Threads::Threads)
