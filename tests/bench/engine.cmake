add_executable(tgd_bench_engine ${CMAKE_CURRENT_LIST_DIR}/engine.cpp)
target_link_libraries(tgd_bench_engine PRIVATE tgd_flags tgd_engine)
add_executable(tgd_bench_data ${CMAKE_CURRENT_LIST_DIR}/data.cpp)
target_link_libraries(tgd_bench_data PRIVATE tgd_flags tgd_engine)
