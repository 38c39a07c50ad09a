# cmake -D TGCTL=PROGRAM -D OUTPUT=FOLDER -P cmake/WritePages.cmake: what the programs say of themselves, as files: manual
# pages (compressed, as Debian has them) and completions.
file(MAKE_DIRECTORY ${OUTPUT})
function(write file)
  execute_process(COMMAND ${TGCTL} ${ARGN} OUTPUT_FILE ${OUTPUT}/${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
foreach(page tgctl.1 tgd.8 tgd.conf.5 tgd.job.5)
  string(REGEX REPLACE "\\.[0-9]$" "" name ${page})
  write(${page} man ${name})
  execute_process(COMMAND gzip -9nf ${OUTPUT}/${page} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
write(tgctl.bash completion bash)
write(_tgctl completion zsh)
