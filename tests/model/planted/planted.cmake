# The simulator, and the proof that it finds what it is there to find. Its sources compile once.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/model/simulator/*.cc)
list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
add_library(simulator_objects OBJECT ${sources})
target_link_libraries(simulator_objects PRIVATE fencepost_consumer fencepost_support)

function(model_test name test)
  if(NOT TARGET tests_model)
    add_custom_target(tests_model)
  endif()
  add_dependencies(tests_model ${name})
  add_test(NAME ${test} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
  set_tests_properties(${test} PROPERTIES LABELS model TIMEOUT 600)
endfunction()

function(simulator_program name test)
  add_executable(${name} $<TARGET_OBJECTS:simulator_objects> ${ARGN})
  target_link_libraries(${name} PRIVATE fencepost_consumer fencepost_support GTest::gtest_main)
  model_test(${name} ${test})
endfunction()

simulator_program(model_simulator model/simulator
  ${PROJECT_SOURCE_DIR}/tests/model/simulator/simulator_test.cc)

# Every *.mutant.cmake here makes one program: the simulator with one file of the shipped source
# changed, linked before the libraries so that it wins. It passes when a violation is reported.
# What no simulated world shows is held by a test: where the mutant sets TESTS (TIER/AREA) and
# CAUGHT_BY, the program is those tests with the file changed, and passes when that one fails.
function(planted_tests name source)
  string(REPLACE "/" "_" target ${TESTS})
  add_executable(${name} $<TARGET_OBJECTS:${target}> ${source}
    ${PROJECT_SOURCE_DIR}/tests/model/planted/planted_test_main.cc)
  target_compile_definitions(${name} PRIVATE CAUGHT_BY="${CAUGHT_BY}")
  target_link_libraries(${name} PRIVATE fencepost_consumer fencepost_support GTest::gmock)
endfunction()

file(GLOB mutants CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.mutant.cmake)
foreach(mutant ${mutants})
  unset(TESTS)
  include(${mutant})
  get_filename_component(name ${mutant} NAME)
  string(REPLACE ".mutant.cmake" "" name ${name})
  set(source ${PROJECT_BINARY_DIR}/planted/${name}.cc)
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DIN=${PROJECT_SOURCE_DIR}/${SOURCE} -DOUT=${source} -DMUTANT=${mutant}
            -P ${CMAKE_CURRENT_LIST_DIR}/mutate.cmake
    DEPENDS ${PROJECT_SOURCE_DIR}/${SOURCE} ${mutant} ${CMAKE_CURRENT_LIST_DIR}/mutate.cmake
    VERBATIM)
  if(TESTS)
    planted_tests(planted_${name} ${source})
    model_test(planted_${name} model/planted/${name})
  else()
    simulator_program(planted_${name} model/planted/${name}
      ${source} ${CMAKE_CURRENT_LIST_DIR}/planted_main.cc)
  endif()
endforeach()
