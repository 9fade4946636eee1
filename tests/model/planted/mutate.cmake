# Plants a bug: copies IN to OUT with the text FROM replaced by TO. Fails where FROM is not there
# exactly once, so that a mutant cannot quietly become the shipped code.
# cmake -DIN=... -DOUT=... -DMUTANT=FILE -P mutate.cmake; MUTANT sets FROM and TO.
include(${MUTANT})
file(READ ${IN} text)
string(FIND "${text}" "${FROM}" first)
string(FIND "${text}" "${FROM}" last REVERSE)
if(first EQUAL -1 OR NOT first EQUAL last)
  message(FATAL_ERROR "${MUTANT}: its text is not once in ${IN}; mend the mutant")
endif()
string(REPLACE "${FROM}" "${TO}" text "${text}")
file(WRITE ${OUT} "${text}")
