# Writes the .cc that holds the statements as they stand in their files, without their comments
# (consumer/outputs/ledger/sql.h):  cmake -DOUT=sql.cc "-DFILES=a.sql;b.sql" -P embed.cmake
if(NOT OUT OR NOT FILES)
  message(FATAL_ERROR "usage: cmake -DOUT=... -DFILES='a;b' -P embed.cmake")
endif()

set(entries "")
foreach(sql IN LISTS FILES)
  get_filename_component(name "${sql}" NAME_WE)
  file(READ "${sql}" text)
  string(REGEX REPLACE "--[^\n]*\n" "" text "${text}")
  string(APPEND entries "const char* const ${name} = R\"sql(${text})sql\";\n")
endforeach()

file(WRITE "${OUT}" "// Generated from consumer/outputs/sql by embed.cmake.
#include \"consumer/outputs/ledger/sql.h\"

namespace fencepost::consumer::sql {

${entries}
}  // namespace fencepost::consumer::sql
")
