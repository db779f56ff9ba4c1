# Compiler flags, sanitizers, ccache, lld and thin archives (a clean build stays under five minutes on two cores).

if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(WARNING "infrarsi is built and tested with clang-19")
endif()

add_compile_options(-Wall -Wextra -Wshadow -Wno-missing-field-initializers -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
    set(CCACHE_LAUNCHER ${CMAKE_COMMAND} -E env
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE_PROGRAM})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_LAUNCHER})
    set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_LAUNCHER})
endif()

find_program(LLD_PROGRAM NAMES ld.lld-19 ld.lld)
if(LLD_PROGRAM AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_link_options(-fuse-ld=lld)
endif()

if(CMAKE_AR MATCHES "ar")
    set(CMAKE_CXX_ARCHIVE_CREATE "<CMAKE_AR> rcTs <TARGET> <OBJECTS>")
    set(CMAKE_CXX_ARCHIVE_APPEND "<CMAKE_AR> rTs <TARGET> <OBJECTS>")
    set(CMAKE_CXX_ARCHIVE_FINISH "")
endif()

if(INFRARSI_SANITIZE STREQUAL "address")
    add_compile_options(-fsanitize=address,undefined -fno-sanitize=function -fno-sanitize-recover=undefined)
    add_link_options(-fsanitize=address,undefined)
elseif(INFRARSI_SANITIZE STREQUAL "thread")
    add_compile_options(-fsanitize=thread)
    add_link_options(-fsanitize=thread)
endif()
