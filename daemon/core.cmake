# What decides (pure: no socket, thread or clock), shared by tgd and the simulator.
add_library(tgd_daemon_core STATIC
  ${CMAKE_CURRENT_LIST_DIR}/doctor/diagnose.cpp
  ${CMAKE_CURRENT_LIST_DIR}/doctor/link_stream.cpp
  ${CMAKE_CURRENT_LIST_DIR}/doctor/link_verdicts.cpp
  ${CMAKE_CURRENT_LIST_DIR}/doctor/node_verdicts.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/announcements.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/barrier.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/batch_statistics.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/compare_digests.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/credit_book.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/exchange.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/gradient_statistics.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/layout.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/reports.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/transfers.cpp
  ${CMAKE_CURRENT_LIST_DIR}/step/float_payload.cpp
  ${CMAKE_CURRENT_LIST_DIR}/step/job_layout.cpp
  ${CMAKE_CURRENT_LIST_DIR}/step/member.cpp
  ${CMAKE_CURRENT_LIST_DIR}/step/payload.cpp
  ${CMAKE_CURRENT_LIST_DIR}/step/replica.cpp
  ${CMAKE_CURRENT_LIST_DIR}/step/worker.cpp
  ${CMAKE_CURRENT_LIST_DIR}/forecast/code_bits.cpp
  ${CMAKE_CURRENT_LIST_DIR}/mesh/probe/burst_meter.cpp
  ${CMAKE_CURRENT_LIST_DIR}/mesh/probe/link_probe.cpp
  ${CMAKE_CURRENT_LIST_DIR}/mesh/probe/round_trips.cpp
  ${CMAKE_CURRENT_LIST_DIR}/membership/aftermath.cpp
  ${CMAKE_CURRENT_LIST_DIR}/membership/choose_exchange.cpp
  ${CMAKE_CURRENT_LIST_DIR}/membership/liveness.cpp
  ${CMAKE_CURRENT_LIST_DIR}/membership/membership.cpp
  ${CMAKE_CURRENT_LIST_DIR}/membership/proposal_right.cpp
  ${CMAKE_CURRENT_LIST_DIR}/membership/run_end.cpp
  ${CMAKE_CURRENT_LIST_DIR}/membership/votes.cpp
  ${CMAKE_CURRENT_LIST_DIR}/forecast/forecast.cpp
  ${CMAKE_CURRENT_LIST_DIR}/forecast/machine.cpp
  ${CMAKE_CURRENT_LIST_DIR}/forecast/predict.cpp
  ${CMAKE_CURRENT_LIST_DIR}/forecast/step_model.cpp)
target_link_libraries(tgd_daemon_core PUBLIC tgd_schema tgd_kernels tgd_engine tgd_flags)
