# tree-sitter's runtime and the grammars that we read, from npm (package-lock.json pins them).

set(TS_ROOT "${INFRARSI_NODE_MODULES}/tree-sitter/vendor/tree-sitter/lib")
if(NOT EXISTS "${TS_ROOT}/src/lib.c")
    message(FATAL_ERROR "tree-sitter is missing in ${INFRARSI_NODE_MODULES}: run scripts/setup first")
endif()

function(infrarsi_grammar name folder)
    set(src "${INFRARSI_NODE_MODULES}/${folder}/src")
    set(sources "${src}/parser.c")
    if(EXISTS "${src}/scanner.c")
        list(APPEND sources "${src}/scanner.c")
    endif()
    add_library(ts_${name} OBJECT ${sources})
    target_include_directories(ts_${name} PRIVATE "${src}")
    # The grammars are third-party C: optimised, quiet, and without UBSan (the YAML scanner stores unaligned int16).
    target_compile_options(ts_${name} PRIVATE -w -O2 -fno-sanitize=undefined)
endfunction()

infrarsi_grammar(python tree-sitter-python)
infrarsi_grammar(bash tree-sitter-bash)

add_library(ts_runtime OBJECT "${TS_ROOT}/src/lib.c")
target_include_directories(ts_runtime PRIVATE "${TS_ROOT}/include" "${TS_ROOT}/src")
target_compile_definitions(ts_runtime PRIVATE _POSIX_C_SOURCE=200112L _DEFAULT_SOURCE)
target_compile_options(ts_runtime PRIVATE -w -O2 -std=c11 -fno-sanitize=undefined)

add_library(infrarsi_tree_sitter STATIC $<TARGET_OBJECTS:ts_runtime> $<TARGET_OBJECTS:ts_python> $<TARGET_OBJECTS:ts_bash>)
target_include_directories(infrarsi_tree_sitter SYSTEM PUBLIC "${TS_ROOT}/include")
set_target_properties(infrarsi_tree_sitter PROPERTIES LINKER_LANGUAGE C)
