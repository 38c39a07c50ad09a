# Fails if an object of an instruction set defines a symbol that the linker may share with other objects (weak or unique):
# it could keep this copy for everyone, and a processor without the instructions would meet it.
# Usage: cmake -DNM=nm -DOBJECTS=a.o|b.o -P isolation.cmake
string(REPLACE "|" ";" objects "${OBJECTS}")
list(LENGTH objects count)
if(count EQUAL 0)
  message(FATAL_ERROR "no objects to look at")
endif()
foreach(object IN LISTS objects)
  execute_process(COMMAND ${NM} -C --defined-only ${object} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  if(symbols MATCHES "[0-9a-f] [WVu] [^\n]*")
    message(FATAL_ERROR "${object} defines a shared symbol: ${CMAKE_MATCH_0}")
  endif()
endforeach()
message(STATUS "${count} objects define no shared symbol")
