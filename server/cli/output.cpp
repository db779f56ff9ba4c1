#include "server/cli/output.h"

#include <cerrno>
#include <cstdio>

namespace infrarsi {

namespace {
void print(std::FILE* stream, std::string_view text) {
    errno = 0;
    const bool written = std::fwrite(text.data(), 1, text.size(), stream) == text.size() && std::fflush(stream) == 0;
    if (!written && errno == EPIPE) std::clearerr(stream);
}
}  // namespace

void print_out(std::string_view text) {
    print(stdout, text);
}
bool is_out_complete() {
    return std::ferror(stdout) == 0;
}
void print_err(std::string_view text) {
    print(stderr, text);
}

}  // namespace infrarsi
