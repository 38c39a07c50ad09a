# What the engine reads from disk.
tgd_fuzz_target(safetensors_fuzz safetensors_fuzz.cpp corpus/safetensors tgd_engine)
tgd_fuzz_target(data_files_fuzz data_files_fuzz.cpp corpus/data_files tgd_engine)
tgd_fuzz_target(arrays_fuzz arrays_fuzz.cpp corpus/arrays tgd_engine)
tgd_fuzz_target(pictures_fuzz pictures_fuzz.cpp corpus/pictures tgd_engine)
