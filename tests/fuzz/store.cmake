# What a run's directory says of its past and its states.
tgd_fuzz_target(store_fuzz store_fuzz.cpp corpus/store tgd_control)
