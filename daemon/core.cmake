# What decides (pure: no socket, thread or clock), shared by tgd and the simulator.
add_library(tgd_daemon_core STATIC
  ${CMAKE_CURRENT_LIST_DIR}/exchange/credit_book.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/exchange.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/exchange_waiting.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/member.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/pieces/float_payload.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/pieces/gradient_statistics.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/pieces/payload.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/pieces/worker.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/plan/code_bits.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/plan/job_plan.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/plan/plan.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/state/compare_digests.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exchange/state/replica.cpp
  ${CMAKE_CURRENT_LIST_DIR}/measure/cores/codec_costs.cpp
  ${CMAKE_CURRENT_LIST_DIR}/measure/link/burst_meter.cpp
  ${CMAKE_CURRENT_LIST_DIR}/measure/link/link_probe.cpp
  ${CMAKE_CURRENT_LIST_DIR}/measure/link/round_trips.cpp
  ${CMAKE_CURRENT_LIST_DIR}/membership/choose_exchange.cpp
  ${CMAKE_CURRENT_LIST_DIR}/membership/liveness.cpp
  ${CMAKE_CURRENT_LIST_DIR}/membership/membership.cpp
  ${CMAKE_CURRENT_LIST_DIR}/membership/proposal.cpp
  ${CMAKE_CURRENT_LIST_DIR}/plan/calibrate.cpp
  ${CMAKE_CURRENT_LIST_DIR}/plan/flops.cpp
  ${CMAKE_CURRENT_LIST_DIR}/plan/machine.cpp
  ${CMAKE_CURRENT_LIST_DIR}/plan/predict.cpp
  ${CMAKE_CURRENT_LIST_DIR}/plan/step_model.cpp
  ${CMAKE_CURRENT_LIST_DIR}/run/observe/straggler.cpp)
target_link_libraries(tgd_daemon_core PUBLIC tgd_schema tgd_kernels tgd_engine tgd_flags)
