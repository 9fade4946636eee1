# What `cmake --install` brings of the lock library (component "locking"): the archive, the headers
# of its public face, a CMake package (fencepost::locking) and a pkg-config file.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Everything that locking.h includes, and nothing else.
set(LOCK_HEADERS locking.h quorum_lock/quorum_lock.h quorum_lock/lease.h base/error.h
  base/secret.h base/types.h core/options.h core/ops.h core/observer.h
  core/store/sentinel.h core/store/node_clock.h core/store/store.h redis/options.h
  recipes/batch_lock.h recipes/election.h recipes/multi_lock.h recipes/reentrant_lock.h)
foreach(header ${LOCK_HEADERS})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/locking/${header} COMPONENT locking
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fencepost/locking/${folder})
endforeach()

set_target_properties(fencepost_locking PROPERTIES EXPORT_NAME locking)
install(TARGETS fencepost_locking EXPORT fencepost_locking ARCHIVE COMPONENT locking
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fencepost)

set(PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/fencepost)
install(EXPORT fencepost_locking NAMESPACE fencepost:: FILE fencepost-locking.cmake
  DESTINATION ${PACKAGE_DIR} COMPONENT locking)
configure_package_config_file(${PROJECT_SOURCE_DIR}/locking/install/fencepost-config.cmake.in
  ${PROJECT_BINARY_DIR}/generated/fencepost-config.cmake INSTALL_DESTINATION ${PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/fencepost-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/fencepost-config.cmake
  ${PROJECT_BINARY_DIR}/generated/fencepost-config-version.cmake
  DESTINATION ${PACKAGE_DIR} COMPONENT locking)

file(RELATIVE_PATH PC_TO_INCLUDE /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig
  /prefix/${CMAKE_INSTALL_INCLUDEDIR})
configure_file(${PROJECT_SOURCE_DIR}/locking/install/fencepost-locking.pc.in
  ${PROJECT_BINARY_DIR}/generated/fencepost-locking.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/fencepost-locking.pc COMPONENT locking
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
