# The simulator, and the proof that it finds what it is there to find. Its sources compile once.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/model/simulator/*.cc)
list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
add_library(simulator_objects OBJECT ${sources})
target_link_libraries(simulator_objects PRIVATE fencepost_consumer fencepost_support)
target_precompile_headers(simulator_objects REUSE_FROM fencepost_support)

if(NOT TARGET tests_model)
  add_custom_target(tests_model)
endif()

# model_program(NAME SOURCES...): a program of the tier "model", not yet a test.
function(model_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE fencepost_consumer fencepost_support GTest::gmock)
  add_dependencies(tests_model ${name})
endfunction()

function(model_test test)
  add_test(NAME model/${test} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
  set_tests_properties(model/${test} PROPERTIES LABELS model TIMEOUT 600)
endfunction()

model_program(model_simulator $<TARGET_OBJECTS:simulator_objects>
  ${PROJECT_SOURCE_DIR}/tests/model/simulator/simulator_test.cc)
target_link_libraries(model_simulator PRIVATE GTest::gtest_main)
model_test(simulator model_simulator)

# --- planted bugs: Planted("NAME") in shipped sources and the node model (locking/base/planted.h)
# Those sources are compiled once more, with the points open, and linked before the libraries, so
# that they win. Each bug is a run of its own: `model_planted NAME`.
file(GLOB_RECURSE shipped CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/locking/*.cc
  ${PROJECT_SOURCE_DIR}/consumer/*.cc ${PROJECT_SOURCE_DIR}/tests/support/*.cc)
set(open_sources)
set(points)
foreach(source ${shipped})
  file(STRINGS ${source} lines REGEX "Planted\\(\"")
  if(lines)
    list(APPEND open_sources ${source})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    string(REGEX MATCHALL "Planted\\(\"[a-z_]+\"" found "${lines}")
    list(APPEND points ${found})
  endif()
endforeach()
list(TRANSFORM points REPLACE "Planted\\(\"([a-z_]+)\"" "\\1")
list(REMOVE_DUPLICATES points)
add_library(planted_objects OBJECT ${open_sources} ${CMAKE_CURRENT_LIST_DIR}/planted.cc)
target_compile_definitions(planted_objects PRIVATE FENCEPOST_PLANTED_BUGS)
target_link_libraries(planted_objects PRIVATE fencepost_consumer fencepost_support)

model_program(model_planted $<TARGET_OBJECTS:simulator_objects> $<TARGET_OBJECTS:planted_objects>
  ${CMAKE_CURRENT_LIST_DIR}/planted_main.cc)

# What no simulated world shows is held by one test: caught_by(BUG TIER/AREA TEST).
function(caught_by bug where test)
  string(REPLACE "/" "_" tests ${where})
  if(NOT TARGET planted_${tests})
    model_program(planted_${tests} $<TARGET_OBJECTS:${tests}> $<TARGET_OBJECTS:planted_objects>
      ${PROJECT_SOURCE_DIR}/tests/model/planted/planted_test_main.cc)
    if(where STREQUAL "unit/cli")
      target_link_libraries(planted_${tests} PRIVATE fencepost_cli)
    endif()
  endif()
  model_test(planted/${bug} planted_${tests} ${bug} ${test})
  set(by_test ${by_test} ${bug} PARENT_SCOPE)
endfunction()

caught_by(ended_generation_counts unit/store
  StoreLists.NeverCountDisjointQuorumsAndAreRepairedInTheEnd)
caught_by(filled_lease_comes_back model/core
  Lease.IsLostAtOnceWhenNoQuorumOfNodesHasKeptIt)
caught_by(second_stop_waits model/worker
  Drain.WaitsForNothingWhenItBeginsAfterTheSecondRequestToStop)
caught_by(output_failure_forgotten model/worker Drain.WaitsForNothingAfterTheOutputHasFailed)
caught_by(rebalance_hides_a_lost_quorum model/worker
  Rows/Readiness.IsAllReasonsThatThereAreTheGravestFirst/the_quorum_is_lost_in_a_rebalance)
caught_by(release_counts_a_rivals_answer model/core
  ReleaseRound.CountsNoAnswerOfANodeThatARivalHolds)
caught_by(backoff_never_grows unit/node_session
  SessionTest.PausesLongerAfterEachFailureUpToTwoSeconds)
caught_by(silent_node_is_kept unit/node_session
  All/Liveness.IsCheckedAtIntervalsAndEndsWithANodeThatIsSilent/Silent)
caught_by(failed_commit_counts unit/flow
  AssignmentTest.IsToBeCommittedAgainAfterACommitThatFailed)
caught_by(lost_lease_is_kept unit/flow LockUnit.IsLeasedNoMoreOnceItIsLost)
caught_by(left_lease_is_released model/flow LeftLease.StaysAtTheNodesUntilItsDeadline)
caught_by(left_lease_is_extended model/flow LeftLease.StaysAtTheNodesUntilItsDeadline)
caught_by(contended_duplicate_waits model/flow
  ContendedRecord.ThatTheLedgerKnowsIsSkippedAtOnceAndTheOthersKeepTheirLeases)
caught_by(handed_on_after_its_end model/flow
  RecordWithTheSameId.AcquiresWhereTheLeaseOfTheOneBeforeItHasEnded)
caught_by(given_up_block_stays_open model/flow
  Block.ThatGaveUpIsAcquiredAgainThoughARecordWithTheSameIdWaitsInIt)
caught_by(dead_letters_out_of_order model/flow
  Withheld.GoOutInTheOrderOfTheirPartition)
caught_by(another_log_is_not_noticed unit/outputs
  PositionMemoryTest.AnotherLogIsFatalEachTimeItIsAsked)
caught_by(first_write_is_not_compared unit/outputs
  PositionMemoryTest.BeforeAFirstWriteALogIsComparedWhereOffsetsBehindItAreDone)

caught_by(crashed_process_stays_away unit/cli
  SupervisionTest.OneThatCrashesIsStartedAgainAloneAndLaterEachTime)
caught_by(decision_is_started_again unit/cli
  SupervisionTest.OneThatEndsByItsOwnDecisionEndsAllWithItsCode)
caught_by(late_answer_is_taken unit/cli
  Channel.AnAnswerThatComesTooLateIsNotTakenForThatToTheNextQuestion)
caught_by(one_ctrl_c_counts_twice unit/cli
  RunSignals.AStopThatComesByTheTerminalAndByTheSupervisorIsOne)

foreach(bug ${by_test})
  if(NOT bug IN_LIST points)
    message(FATAL_ERROR "no shipped source has a point Planted(\"${bug}\")")
  endif()
endforeach()
list(REMOVE_ITEM points ${by_test})
foreach(bug ${points})
  model_test(planted/${bug} model_planted ${bug})
endforeach()
