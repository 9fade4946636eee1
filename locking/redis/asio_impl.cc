// Asio's own code, compiled once (ASIO_SEPARATE_COMPILATION). A header of the standard library
// comes first: Asio 1.22 asks macros of it how to allocate, and must find the same as in every
// other file.
#include <cstdlib>

#include <asio/impl/src.hpp>
#include <asio/ssl/impl/src.hpp>
