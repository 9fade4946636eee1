# For another architecture than this machine's: Debian's cross compiler and multi-arch libraries,
# and qemu-user, which runs what is built. dpkg-architecture has set the variables.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $ENV{DEB_HOST_GNU_CPU})
set(CMAKE_C_COMPILER $ENV{DEB_HOST_GNU_TYPE}-gcc)
set(CMAKE_CXX_COMPILER $ENV{DEB_HOST_GNU_TYPE}-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-$ENV{DEB_HOST_GNU_CPU})
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/$ENV{DEB_HOST_MULTIARCH}/pkgconfig:/usr/share/pkgconfig)
