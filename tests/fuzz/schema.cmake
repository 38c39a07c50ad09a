# Everything that reads what a peer or a user wrote.
foreach(entry frame request reply job)
  tgd_fuzz_target(fuzz_${entry} fuzz_${entry}.cpp corpus/${entry} tgd_schema)
endforeach()
