# What the Debian packages hold, and what cpack says of them; deploy/package/make runs it. Documents
# that are made from the program are in DOCUMENTS, laid out as below /usr/share.
set(DEPLOY ${PROJECT_SOURCE_DIR}/deploy)
set(DOCUMENTS ${PROJECT_BINARY_DIR}/documents)
set(SHARE share/fencepost)

install(FILES ${DEPLOY}/systemd/fencepost@.service ${DEPLOY}/systemd/redis-lock@.service
  DESTINATION lib/systemd/system COMPONENT fencepost)
install(DIRECTORY DESTINATION /etc/fencepost COMPONENT fencepost)
install(DIRECTORY ${DEPLOY}/mysql ${DEPLOY}/postgres DESTINATION ${SHARE} COMPONENT fencepost
  FILES_MATCHING PATTERN *.sql)
install(FILES ${DEPLOY}/grafana/fencepost.json DESTINATION ${SHARE}/grafana COMPONENT fencepost)
install(FILES ${DEPLOY}/prometheus/alerts.yaml ${DEPLOY}/prometheus/recording-rules.yaml
  DESTINATION ${SHARE}/prometheus COMPONENT fencepost)
install(FILES ${DEPLOY}/redis/fence.lua DESTINATION ${SHARE}/redis COMPONENT fencepost)
install(PROGRAMS ${DEPLOY}/kafka/make-acls DESTINATION ${SHARE}/kafka COMPONENT fencepost)
install(PROGRAMS ${DEPLOY}/redis/make-acl DESTINATION ${SHARE}/redis COMPONENT fencepost)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/config/examples DESTINATION share/doc/fencepost
  COMPONENT fencepost USE_SOURCE_PERMISSIONS PATTERN __pycache__ EXCLUDE)

# Handlers' module, and what pytest finds its fixtures by.
set(PYTHON lib/python3/dist-packages)
set(MODULE ${PROJECT_SOURCE_DIR}/consumer/handlers/exec/python)
set(ABOUT ${PROJECT_BINARY_DIR}/fencepost.dist-info)
file(CONFIGURE OUTPUT ${ABOUT}/METADATA
  CONTENT "Metadata-Version: 2.1\nName: fencepost\nVersion: ${PROJECT_VERSION}\n")
file(CONFIGURE OUTPUT ${ABOUT}/entry_points.txt
  CONTENT "[pytest11]\nfencepost = fencepost.pytest_plugin\n")
install(DIRECTORY ${MODULE}/fencepost DESTINATION ${PYTHON} COMPONENT fencepost
  PATTERN __pycache__ EXCLUDE)
install(DIRECTORY ${ABOUT}/ DESTINATION ${PYTHON}/fencepost-${PROJECT_VERSION}.dist-info
  COMPONENT fencepost)
install(DIRECTORY ${DOCUMENTS}/fencepost/ DESTINATION share COMPONENT fencepost)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/locking/examples DESTINATION share/doc/fencepost-locking-dev
  COMPONENT locking)
install(DIRECTORY ${DOCUMENTS}/fencepost-locking-dev/ DESTINATION share COMPONENT locking)
install(CODE "execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${CMAKE_STRIP} --strip-debug
  --enable-deterministic-archives \
  \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libfencepost_locking.a\")"
  COMPONENT locking)

file(STRINGS /etc/debian_version DEBIAN REGEX "^[0-9]+")
string(REGEX MATCH "^[0-9]+" DEBIAN "${DEBIAN}")
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE $ENV{DEB_HOST_ARCH})
set(CPACK_EMULATOR ${CMAKE_CROSSCOMPILING_EMULATOR})
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "fencepost maintainers <maintainers@fencepost.example>")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/cpack)
set(CPACK_COMPONENTS_ALL fencepost locking)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# A package of Debian 13 replaces that of Debian 12.
set(CPACK_DEBIAN_PACKAGE_RELEASE 1+deb${DEBIAN})

set(CPACK_DEBIAN_FENCEPOST_PACKAGE_NAME fencepost)
set(CPACK_DEBIAN_FENCEPOST_PACKAGE_SECTION net)
set(CPACK_DEBIAN_FENCEPOST_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FENCEPOST_DEBUGINFO_PACKAGE ON)
set(CPACK_DEBIAN_FENCEPOST_PACKAGE_RECOMMENDS ca-certificates)
set(CPACK_DEBIAN_FENCEPOST_PACKAGE_SUGGESTS
  "libsasl2-modules-gssapi-mit, python3, redis-server")
set(CPACK_DEBIAN_FENCEPOST_PACKAGE_CONTROL_EXTRA ${DEPLOY}/package/prerm)
set(CPACK_COMPONENT_FENCEPOST_DESCRIPTION "Kafka consumer that gives each record its effect once
Each record is processed under a quorum lock over independent Redis servers,
and its effect is written in one transaction with a ledger row: to PostgreSQL,
MySQL, MariaDB, SQLite or Kafka.
")

set(CPACK_DEBIAN_LOCKING_PACKAGE_NAME fencepost-locking-dev)
set(CPACK_DEBIAN_LOCKING_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LOCKING_PACKAGE_DEPENDS
  "libexpected-dev, libfmt-dev, libhiredis-dev, libssl-dev, pkg-config")
set(CPACK_COMPONENT_LOCKING_DESCRIPTION "fenced quorum locks over Redis servers (C++ library)
A static library for C++20: locks that a majority of independent Redis servers
grant, with fencing tokens, and recipes made of them.
")
include(CPack)
