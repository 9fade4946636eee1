# Writes the .cc that holds the examples as they stand in their files (Examples() of
# config/examples.h):  cmake -DOUT=examples.cc "-DEXAMPLES=a.yaml;b.py" -P embed.cmake
if(NOT OUT OR NOT EXAMPLES)
  message(FATAL_ERROR "usage: cmake -DOUT=... -DEXAMPLES='a;b' -P embed.cmake")
endif()

set(entries "")
foreach(example IN LISTS EXAMPLES)
  get_filename_component(name "${example}" NAME)
  string(REGEX REPLACE "[.]yaml$" "" name "${name}")
  file(READ "${example}" text)
  string(FIND "${text}" ")example\"" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${example} holds the end mark of its raw string literal")
  endif()
  string(APPEND entries "    {\"${name}\", R\"example(${text})example\"},\n")
endforeach()

file(WRITE "${OUT}" "// Generated from config/examples by embed.cmake.
#include \"config/examples.h\"

namespace fencepost::config {
namespace {

constexpr Example kExamples[] = {
${entries}};

}  // namespace

std::span<const Example> Examples() { return kExamples; }

}  // namespace fencepost::config
")
