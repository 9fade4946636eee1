# The simulator, and the proof that it finds what it is there to find. Its sources compile once.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/model/simulator/*.cc)
list(FILTER sources EXCLUDE REGEX "(_test|long_run)\\.cc$")
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
  ${PROJECT_SOURCE_DIR}/tests/model/simulator/history_test.cc
  ${PROJECT_SOURCE_DIR}/tests/model/simulator/simulator_test.cc)
target_link_libraries(model_simulator PRIVATE GTest::gtest_main)
model_test(simulator model_simulator)
model_program(simulator_long_run $<TARGET_OBJECTS:simulator_objects>
  ${PROJECT_SOURCE_DIR}/tests/model/simulator/long_run.cc)

# --- planted bugs: Planted("NAME") in shipped sources and the node model (locking/base/planted.h)
# Those sources are compiled once more, with the points open, and linked before the libraries, so
# that they win. Each bug is a run of its own: `model_planted NAME`.
file(GLOB_RECURSE shipped CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/locking/*.cc
  ${PROJECT_SOURCE_DIR}/consumer/*.cc ${PROJECT_SOURCE_DIR}/tests/support/*.cc)
set(open_sources)
set(open_cli_sources)  # they need the commands' library
set(points)
foreach(source ${shipped})
  file(STRINGS ${source} lines REGEX "Planted\\(\"")
  if(lines)
    if(source MATCHES "/consumer/cli/")
      list(APPEND open_cli_sources ${source})
    else()
      list(APPEND open_sources ${source})
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    string(REGEX MATCHALL "Planted\\(\"[a-z_]+\"" found "${lines}")
    list(APPEND points ${found})
  endif()
endforeach()
list(TRANSFORM points REPLACE "Planted\\(\"([a-z_]+)\"" "\\1")
list(REMOVE_DUPLICATES points)
add_library(planted_objects OBJECT ${open_sources} ${CMAKE_CURRENT_LIST_DIR}/planted.cc)
add_library(planted_cli_objects OBJECT ${open_cli_sources})
target_link_libraries(planted_cli_objects PRIVATE fencepost_cli)
foreach(objects planted_objects planted_cli_objects)
  target_compile_definitions(${objects} PRIVATE FENCEPOST_PLANTED_BUGS)
  target_link_libraries(${objects} PRIVATE fencepost_consumer fencepost_support)
endforeach()
add_custom_target(planted_programs)

function(planted_program name)
  model_program(${name} $<TARGET_OBJECTS:planted_objects> ${ARGN})
  add_dependencies(planted_programs ${name})
endfunction()

planted_program(model_planted $<TARGET_OBJECTS:simulator_objects>
  ${CMAKE_CURRENT_LIST_DIR}/planted_main.cc)

# NAME: that this test finds the bug.
function(planted_test name bug where test)
  string(REPLACE "/" "_" tests ${where})
  if(NOT TARGET planted_${tests})
    planted_program(planted_${tests} $<TARGET_OBJECTS:${tests}>
      ${PROJECT_SOURCE_DIR}/tests/model/planted/planted_test_main.cc)
    if(where STREQUAL "unit/cli")
      target_sources(planted_${tests} PRIVATE $<TARGET_OBJECTS:planted_cli_objects>)
      target_link_libraries(planted_${tests} PRIVATE fencepost_cli)
    endif()
  endif()
  model_test(planted/${name} planted_${tests} ${bug} ${test})
endfunction()

# What no simulated world shows is held by one test: caught_by(BUG TIER/AREA TEST).
function(caught_by bug where test)
  planted_test(${bug} ${bug} ${where} ${test})
  set(by_test ${by_test} ${bug} PARENT_SCOPE)
endfunction()

caught_by(ended_generation_counts unit/store
  StoreLists.NeverCountDisjointQuorumsAndAreRepairedInTheEnd)
caught_by(another_lists_raise_is_own model/replacement
  All/ReplacedNode.NeverCountsBesideTheOneInItsPlaceAndSomebodyCanLockInTheEnd/1)
caught_by(filled_lease_comes_back model/core
  Lease.IsLostAtOnceWhenNoQuorumOfNodesHasKeptIt)
caught_by(late_ones_all_ask_the_rest model/core
  AQuorumFirst.IsAloneWhereAllNodesAreLateTogetherUntilOneTimesOut)
caught_by(second_stop_waits model/worker
  Drain.WaitsForNothingWhenItBeginsAfterTheSecondRequestToStop)
caught_by(stale_assignment_is_written model/flow
  Ownership.IsAskedForOnceMoreWhereTheLastCommitThatWasTakenIsOlderThanAQuarterOfLedgerKeep)
caught_by(late_batch_is_written model/worker
  WithoutNodes.RecordsAreNotWrittenAnyMoreOnceWhatOthersWroteSinceMayBePruned)
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
caught_by(conflict_waits_for_its_lock model/flow
  ContendedRecord.WithAnIdOfOtherContentIsADeadLetterAtOnce)
caught_by(handed_on_after_its_end model/flow
  RecordWithTheSameId.AcquiresWhereTheLeaseOfTheOneBeforeItHasEnded)
caught_by(given_up_block_stays_open model/flow
  Block.ThatGaveUpIsAcquiredAgainThoughARecordWithTheSameIdWaitsInIt)
caught_by(dead_letters_out_of_order model/flow
  Withheld.GoOutInTheOrderOfTheirPartition)
caught_by(found_row_is_not_asked_for unit/outputs
  LostCommitDetectorTest.AsksForEachRowThatWasFoundSinceItsNewestCommit)
caught_by(found_row_is_evidence unit/outputs
  LostCommitDetectorTest.TakesAFoundRowForNoEvidenceThatCommitsAreThere)
caught_by(found_row_is_as_young_as_its_look unit/outputs
  LostCommitDetectorTest.DoesNotTakeAFoundRowThatWasPrunedForALoss)
caught_by(another_log_is_not_noticed unit/outputs
  PositionMemoryTest.AnotherLogIsFatalEachTimeItIsAsked)
caught_by(dead_letter_leaves_a_hole model/flow
  DeadLetteringByPosition.IsDoneInTheLedgerBeforeTheWatermarkPassesIt)
caught_by(filtered_record_is_marked model/flow FilteringToLines.IsNotMarkedDone)
caught_by(dead_letter_while_in_doubt model/flow
  DeadLettering.OfARecordInDoubtWaitsUntilItsUnansweredTransactionCannotComeAnyMore)
caught_by(unanswered_write_is_not_told unit/outputs
  WriteRetryTest.ABadRecordOfATransactionThatWasNotAnsweredIsInDoubt)
caught_by(just_committed_is_pruned model/flow
  PrunableWithAKeep.IsWhatTheGroupHasHadCommittedForAWhile)
caught_by(look_ups_go_first unit/outputs
  WriterQueueTest.AWriteWaitsForOneLookUpHoweverManyComeMeanwhile)
caught_by(old_position_is_the_groups component/kafka
  KafkaSourceOnMock.SaysNothingOfTheGroupsOffsetsWhereTheGroupHasGoneOnWithoutIt)
caught_by(way_on_is_always_the_first unit/kafka
  OffsetOutOfRange.SetsNoGroupBackThatHasReadBeyondWhatWasDeleted)
caught_by(late_beginnings_are_anothers unit/store
  StoreReplacement.TakesInANodeWithTheLateBeginningsOfAnotherClientOfTheSameNodes)
caught_by(later_anchor_is_not_compared unit/outputs
  PositionMemoryTest.AnAnchorThatAnotherHasWrittenIsComparedWithTheNextWriteWhereverThatIs)
caught_by(former_assignment_is_not_compared unit/outputs
  PositionMemoryTest.WhatWasReadInAFormerAssignmentIsComparedWhenItIsWritten)
caught_by(first_write_is_not_compared unit/outputs
  PositionMemoryTest.BeforeTheFirstWriteOfAnAssignmentTheLogOfARowIsCompared)
caught_by(overlap_is_not_compared_before unit/outputs
  PositionMemoryTest.AFirstWriteOfWhatIsDoneComparesAllAnchorsBeforeItsOwnTakeTheirPlace)
caught_by(own_anchors_are_news_to_nobody unit/outputs
  PositionMemoryTest.WhatIsWrittenOnceAnotherHasWrittenIsComparedToo)
caught_by(ledger_behind_goes_unsaid unit/outputs
  PositionMemoryTest.AGroupThatGoesOnBehindWhatIsDoneIsNamedOnceAnAssignment)
caught_by(unread_log_is_written unit/outputs
  PositionMemoryTest.APartitionWhoseLogCannotBeReadHoldsUpNoOther)
caught_by(short_end_is_believed_at_once unit/kafka
  ShortEnds.AreBelievedOnceTheyWereFoundForTenSecondsAndNoOtherOneMeanwhile)
caught_by(not_compared_is_forgotten unit/outputs
  PositionMemoryTest.WhatCannotBeComparedYetIsComparedBeforeTheNextWrite)

caught_by(late_extension_counts model/core Lease.IsNotExtendedByALateAnswerToAnEarlierRound)
caught_by(lost_lease_resets_attempts model/flow Retry.GoesOnCountingWhereALostLeaseInterruptsIt)
caught_by(unanswered_write_is_marked model/flow
  Marking.IsNotOfAnEffectThatTheOutputHadNotAnsweredWhenItEnded)
caught_by(interrupted_write_counts unit/outputs
  Writer.AnswersNothingOfAWriteThatItsStopInterrupted)
caught_by(answered_before_it_is_synced component/outputs
  FileSyncTest.AWriteIsAnsweredOnceAllOfItIsOnTheDisk)
caught_by(failed_fetch_is_no_offset component/kafka
  OffsetFetch.ThatFailsIsNotTakenForAGroupWithoutOffsets)

caught_by(plain_acquire_tells_no_clock component/redis
  PlainAcquireTest.TellsTheNodesClockAsACallOfTheScriptDoes)
caught_by(plain_grant_counts_by_any_clock unit/wire
  PlainAcquireTest.CountsAGrantOnlyWithADeadlineThatTheScriptCouldHaveGiven)
caught_by(plain_grant_counts_in_quarantine unit/wire
  PlainBatchTest.TellsThatTheNodeIsInQuarantine)
caught_by(short_plain_grant_stays unit/wire
  PlainBatchTest.GivesALaterDeadlineByAnExtensionWhereTheNodeWasSlow)
caught_by(plain_acquire_after_its_abort unit/wire
  PlainBatchTest.UsesTheScriptWhereTheEndOfAnAttemptFollows)
caught_by(resent_behind_its_end component/redis
  BatchTest.DoesNotWriteAgainWhatALaterCallHasOvertakenAndMustNotComeLate)
caught_by(clock_may_step_back unit/store NodeClock.SeesAStepBeyondTheDriftEitherWay)
caught_by(forget_drops_the_floor component/scripts
  Differential.ARealNodeAnswersAndStoresWhatTheModelSays)

# Databases. Each starts its server, which takes a second or two.
caught_by(postgres_effect_of_a_known_id component/outputs
  Stores/LedgerTest.JudgesRecordsThatTheLedgerKnowsByContentThenSourceThenToken/postgres)
caught_by(postgres_rows_are_not_locked component/outputs
  Servers/ServerPositionsTest.AWriteThatWaitedForItsRowSeesAllThatWasCommittedBeforeIt/postgres)
caught_by(mysql_rows_are_not_locked component/outputs
  Servers/ServerPositionsTest.AWriteThatWaitedForItsRowSeesAllThatWasCommittedBeforeIt/mysql)
caught_by(mysql_ledger_row_is_optional component/outputs
  MysqlTest.AnIdThatAnotherWriterInsertsMeanwhileMakesAllOfItBeDoneAgain)
caught_by(mysql_fence_goes_first component/outputs
  Stores/OrderTest.ABatchWithAFenceLeavesWhatItsRowsLeaveOneAfterTheOther/mysql)
caught_by(sqlite_without_a_transaction component/outputs
  Stores/RulesTest.OneBadRowMakesItsRecordBadAndNothingOfItIsWritten/sqlite)
caught_by(sqlite_effect_of_a_known_id component/outputs
  Stores/LedgerTest.JudgesRecordsThatTheLedgerKnowsByContentThenSourceThenToken/sqlite)
caught_by(filtered_record_is_a_conflict component/outputs
  Stores/LedgerTest.ARecordThatMakesNoRowLeavesItsIdToAnotherContent/sqlite)
caught_by(replay_finds_its_letter_done component/outputs
  Stores/PositionsTest.DeadLettersLeaveNoHoleAndCanBeReplayedOnce/sqlite)
caught_by(replayed_letter_stays component/outputs
  Stores/PositionsTest.DeadLettersLeaveNoHoleAndCanBeReplayedOnce/sqlite)
caught_by(forget_of_all_pipelines component/outputs
  Stores/RulesTest.LooksUpAndForgetsOnlyItsOwnPipeline/sqlite)
caught_by(forgotten_counts_as_lost component/outputs
  ReplacedSqliteTest.WhatSomebodyTookBackIsNoLossInACopyOfTheFile)
caught_by(other_content_is_a_duplicate unit/outputs
  Ledger.AsksForContentFirstThenSourceThenToken)
caught_by(next_to_come_is_pruned unit/outputs
  Ledger.ForgetsOnlyRowsBelowWhatIsCommittedOrOfOtherTopics)
caught_by(anothers_row_is_ones_own unit/outputs
  LostCommitDetectorTest.KnowsARowThatAnotherWroteAnewFromItsOwn)

caught_by(offsets_outside_the_transaction component/kafka
  KafkaOutputOnMock.WritesNothingWhereTheGroupRefusesTheOffsets)
caught_by(transaction_without_its_bad_record component/kafka
  KafkaOutputOnMock.WritesNothingOfATransactionWithARecordThatIsBad)
caught_by(unanswered_commit_counts component/kafka
  KafkaOutputOnMock.TakesACommitForDoneOnlyOnceItIsAnswered)
caught_by(unknown_commit_counts component/kafka
  KafkaOutputOnMock.WritesAgainWhereNoOffsetsTellWhatBecameOfACommit)
caught_by(refused_letter_counts component/kafka DeadLetters.ArePublishedOnceTheBrokerHasTakenThem)
caught_by(letter_keeps_its_former_headers component/kafka
  DeadLetters.SayWhereTheyComeFromNowAndNotWhereAnEarlierOneDid)

caught_by(torn_answer_counts component/handlers
  HttpHandler.TakesAnAnswerThatBreaksOffAndWhatIsNotHttpForNone)
caught_by(first_refusals_are_believed model/flow
  FirstRecords.AreDeadLettersOnceOneSucceeds)
caught_by(attempt_is_sent_again component/handlers
  HttpHandler.SendsARequestOnceWhereAConnectionThatWasUsedBeforeEndsWithoutAnAnswer)
caught_by(late_call_goes_out component/handlers HttpHandler.SendsNothingUnderALeaseThatHasEnded)
caught_by(expired_token_is_used unit/handlers Token.IsAskedForOnceAndUsedUntilItExpires)
caught_by(header_hides_the_token component/handlers
  HttpHandler.SendsTheRecordWithItsIdItsTokenAndItsSource)
caught_by(reply_to_another_record_counts component/handlers
  ExecHandler.RefusesAReplyToAnotherRecord)
caught_by(line_from_before_is_the_reply component/handlers
  WholeAndPart/ExecHandlerLate.TextIsNotTakenForTheReplyToTheNextRecord/0)
caught_by(batch_blames_its_records model/flow
  SharedFailure.MakesNoDeadLetterAndItsRecordsAreTriedAgainAlone)
caught_by(verdicts_go_by_order unit/handlers
  HttpBatch.OfAnArraySaysOfEachRecordWhatItsAnswerSays)
caught_by(answer_replaces_the_record unit/handlers
  HttpResult.IsWhatTheAnswerMakesOfTheRecord)
caught_by(bad_answer_counts unit/handlers HttpResult.IsWhatTheAnswerMakesOfTheRecord)
caught_by(jq_may_change_numbers component/handlers
  JqRunner.RefusesANumberThatItWouldChangeOnlyWhereTheResultDependsOnIt)
caught_by(replay_of_what_took_effect unit/cli Replay.OfWhatTookEffectMeanwhileIsRefused)

# The simulator finds these too.
model_test(planted/another_log_is_not_noticed/simulator model_planted another_log_is_not_noticed)
# The small worlds of model/flow find these too.
planted_test(record_outside_its_block/small_world record_outside_its_block model/flow
  BlocksInASmallWorld.CoverWhatIsProcessedThroughTheEndAndTheExtensionOfTheirLeases)
planted_test(unit_released_under_its_others/small_world unit_released_under_its_others model/flow
  BlocksInASmallWorld.CoverWhatIsProcessedWhereTheirPartitionIsTakenAway)
planted_test(left_while_unknown/small_world left_while_unknown model/flow
  LeasesLeftBehindInASmallWorld.AreOfRecordsThatTheLedgerHasThoughAWorkerDiedOrWasNotAnswered)
planted_test(same_id_side_by_side/small_world same_id_side_by_side model/flow
  BlocksInASmallWorld.EndWhereARecordWaitsForItsReplay)

foreach(bug ${by_test})
  if(NOT bug IN_LIST points)
    message(FATAL_ERROR "no shipped source has a point Planted(\"${bug}\")")
  endif()
endforeach()
list(REMOVE_ITEM points ${by_test})
foreach(bug ${points})
  model_test(planted/${bug} model_planted ${bug})
endforeach()
