# The build id: the version, and the beginning of a SHA-256 over the paths and contents of all that tgd and tgctl are made
# of. A clone, an exported tree, a package and an image of the same sources have the same id, whatever git knows of them.
#   include(TgdBuildId)                 defines tgd_product_sources
#   cmake -P cmake/TgdBuildId.cmake     prints the id of the tree that the script lies in
#   cmake -D TEMPLATE=FILE -D OUTPUT=FILE -P cmake/TgdBuildId.cmake     writes the template with @TGD_BUILD_ID@ in its place

# The sources as paths from the root, sorted by their bytes. Further arguments go to file(GLOB_RECURSE).
function(tgd_product_sources sources)
  cmake_path(GET CMAKE_CURRENT_FUNCTION_LIST_DIR PARENT_PATH root)
  set(patterns "")
  foreach(folder cmake ctl daemon engine kernels schema)
    foreach(kind *.h *.cpp *.cu *.cuh *.map *.capnp *.cmake *.in *.py CMakeLists.txt)
      list(APPEND patterns ${root}/${folder}/${kind})
    endforeach()
  endforeach()
  file(GLOB_RECURSE found LIST_DIRECTORIES false RELATIVE ${root} ${ARGN} ${patterns})
  list(FILTER found EXCLUDE REGEX "(^|/)\\.")  # what an editor leaves behind
  list(APPEND found CMakeLists.txt)
  list(SORT found COMPARE STRING CASE SENSITIVE ORDER ASCENDING)
  set(${sources} ${found} PARENT_SCOPE)
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  return()
endif()

cmake_policy(VERSION 3.25)
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH root)
tgd_product_sources(sources)
set(lines "")
foreach(source IN LISTS sources)
  file(SHA256 ${root}/${source} content)
  string(APPEND lines "${content}  ${source}\n")
endforeach()
string(SHA256 digest "${lines}")
string(SUBSTRING ${digest} 0 12 digest)
file(STRINGS ${root}/CMakeLists.txt lines REGEX "^project\\(tgd VERSION [0-9]")
if(NOT lines MATCHES "VERSION ([0-9.]+)")
  message(FATAL_ERROR "${root}/CMakeLists.txt lacks a line: project(tgd VERSION ...")
endif()
set(TGD_BUILD_ID "${CMAKE_MATCH_1}+${digest}")
if(OUTPUT)
  configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
else()
  execute_process(COMMAND ${CMAKE_COMMAND} -E echo ${TGD_BUILD_ID})  # message() writes to stderr
endif()
