# Writes the .cc that holds the Lua scripts as they stand in their files (EmbeddedScripts of
# locking/redis/wire.h), with prelude.lua after the first line of each that works on names:
#   cmake -DOUT=scripts.cc "-DSCRIPTS=a.lua;b.lua;prelude.lua" -P embed.cmake
if(NOT OUT OR NOT SCRIPTS)
  message(FATAL_ERROR "usage: cmake -DOUT=... -DSCRIPTS='a;b' -P embed.cmake")
endif()

file(READ "${CMAKE_CURRENT_LIST_DIR}/prelude.lua" shared)
set(entries "")
foreach(script IN LISTS SCRIPTS)
  get_filename_component(name "${script}" NAME_WE)
  if(name STREQUAL "prelude")
    continue()
  endif()
  file(READ "${script}" text)
  if(NOT name MATCHES "^sentinel_write$")
    string(FIND "${text}" "\n" end_of_flags)
    math(EXPR rest "${end_of_flags} + 1")
    string(SUBSTRING "${text}" 0 ${rest} flags)
    string(SUBSTRING "${text}" ${rest} -1 body)
    set(text "${flags}${shared}${body}")
  endif()
  string(FIND "${text}" ")lua\"" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${script} holds the end mark of its raw string literal")
  endif()
  string(APPEND entries "    {\"${name}\", R\"lua(${text})lua\"},\n")
endforeach()

file(WRITE "${OUT}" "// Generated from locking/core/scripts by embed.cmake.
#include \"locking/redis/wire.h\"

namespace fencepost::locking {
namespace {

constexpr EmbeddedScript kScripts[] = {
${entries}};

}  // namespace

std::span<const EmbeddedScript> EmbeddedScripts() { return kScripts; }

}  // namespace fencepost::locking
")
