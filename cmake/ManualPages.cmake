# Manual pages, made by help2man from what the programs print; deploy/manual/NAME.h2m has what their help lacks. Without
# help2man a build has none, and says so.
find_program(TGD_HELP2MAN help2man)
if(NOT TGD_HELP2MAN)
  if(TGD_DEBIAN)
    message(FATAL_ERROR "help2man is not installed, and a package has manual pages: apt-get install help2man")
  endif()
  message(STATUS "Manual pages: left out; apt-get install help2man")
  return()
endif()

execute_process(COMMAND date -ud ${TGD_RELEASE_DATE} +%s OUTPUT_VARIABLE released OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
add_custom_target(pages ALL)
add_dependencies(products pages)

# manual_page(PROGRAM SECTION PAGE HELP SUMMARY): HELP is the option or the command that prints the text.
function(manual_page program section page help summary)
  set(file ${CMAKE_BINARY_DIR}/pages/${page}.${section})
  set(more ${CMAKE_CURRENT_SOURCE_DIR}/manual/${page}.h2m)
  add_custom_command(OUTPUT ${file}.gz
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/pages
    COMMAND ${CMAKE_COMMAND} -E env SOURCE_DATE_EPOCH=${released} ${TGD_HELP2MAN} --no-info --section=${section}
            "--name=${summary}" "--version-string=${page} ${PROJECT_VERSION}" "--help-option=${help}" --include=${more}
            --output=${file} $<TARGET_FILE:${program}>
    COMMAND gzip -9nf ${file}
    DEPENDS ${program} ${more}
    VERBATIM)
  add_custom_target(page_${page} DEPENDS ${file}.gz)
  add_dependencies(pages page_${page})
  set(if_built OPTIONAL)  # a build of tgd and tgctl alone installs these alone
  if(TGD_DEBIAN)
    set(if_built "")
  endif()
  string(REPLACE "tgd.job" "tgctl" component ${page})
  string(REPLACE "tgd.conf" "tgd" component ${component})
  install(FILES ${file}.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT ${component} ${if_built})
endfunction()

manual_page(tgctl 1 tgctl "help all" "start, watch and end training runs of a mesh of tgd nodes")
manual_page(tgd 8 tgd --help "node of a mesh that trains neural networks")
manual_page(tgctl 5 tgd.conf "help node" "configuration of a node")
manual_page(tgctl 5 tgd.job "help job" "what a training run of tgd does")
