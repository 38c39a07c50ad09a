// A library that a module for tests needs and that no loader finds.
extern "C" int tgd_absent_library() { return 0; }
