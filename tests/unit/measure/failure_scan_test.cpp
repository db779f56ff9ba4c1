#include "core/measure/failure_scan.h"

using namespace infrarsi;

namespace {

std::string class_of(std::string_view line) {
    const auto failure = scan_failure(line);
    return failure ? failure->failure_class : "";
}

}  // namespace

TEST_CASE("lines that mean failure are classified", "[measure]") {
    struct Case {
        const char* line;
        const char* expected;
    };
    const Case cases[] = {
        {"[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 5 has a total "
         "capacity "
         "of 139.81 GiB of which 301.25 MiB is free. Including non-PyTorch memory, this process has 139.51 GiB memory "
         "in "
         "use. Of the allocated memory 131.02 GiB is allocated by PyTorch, and 4.11 GiB is reserved by PyTorch but "
         "unallocated.",
         "oom_device"},
        {"RuntimeError: [enforce fail at alloc_cpu.cpp:114] err == 0. DefaultCPUAllocator: can't allocate memory: you "
         "tried to allocate 4294967296 bytes. Error code 12 (Cannot allocate memory)",
         "oom_host"},
        {"[rank13]: ncclSystemError: System call (e.g. socket, malloc) failed", "collective"},
        {"RuntimeError: CUDA error: an illegal memory access was encountered", "kernel"},
        {"torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:", "compile"},
        {"ModuleNotFoundError: No module named 'flash_attn'", "import"},
        {"Traceback (most recent call last):", "traceback"},
        {"step 12 | loss nan | norm 1.0", "numerical"},
        {"{'loss': 'nan', 'grad_norm': 1.0}", "numerical"},
        {"{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1e-05}", "numerical"},
        {"iter 30: loss inf, time 12ms", "numerical"},
        {"OSError: [Errno 28] No space left on device", "environment"},
        {"AssertionError: Using sequence parallelism requires setting the environment variable "
         "CUDA_DEVICE_MAX_CONNECTIONS to 1",
         "config"},
    };
    for (const auto& item : cases) {
        INFO(item.line);
        CHECK(class_of(item.line) == item.expected);
    }
}

TEST_CASE("harmless lines are not failures", "[measure]") {
    const char* lines[] = {
        "",
        "nan",
        "sample 3: 'the gradient became NaN and the loss: unknown'",
        "UserWarning: an error in the cache directory was ignored; nothing is wrong",
        "step 12 | loss 3.25 | norm 1.0 | info nominal",
        "0 errors, 2 warnings",
        "[W socket.cpp:663] [c10d] The client socket has failed to connect to [localhost]:12345 (errno: 101)",
        "for best performance set CUDA_DEVICE_MAX_CONNECTIONS=1",
        "3 CUDA memory allocation retries.",
        "training on the financial information data set",
    };
    for (const auto* line : lines) {
        INFO(line);
        CHECK(class_of(line) == "");
    }
}

TEST_CASE("the root cause wins over what follows from it", "[measure]") {
    PrimaryFailure primary;
    int number = 0;
    for (const char* text :
         {"Traceback (most recent call last):",
          "Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=9) ran "
          "for 10 milliseconds",
          "RuntimeError: CUDA error: out of memory", "RuntimeError: CUDA error: out of memory",
          "failed (exitcode: 1) local_rank: 7 (pid: 153932) of binary: python"}) {
        const auto signature = match_failure(text);
        REQUIRE(signature);
        FailureLine line;
        line.failure_class = signature->failure_class;
        line.line = ++number;
        primary.see(*signature, line);
    }
    REQUIRE(primary.line());
    CHECK(primary.line()->failure_class == "oom_device");
    CHECK(primary.line()->line == 3);
}

TEST_CASE("the numbers of an out-of-memory line", "[measure]") {
    const auto fresh = read_out_of_memory(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 3 has a total capacity of 79.19 "
        "GiB "
        "of which 1.14 GiB is free. Including non-PyTorch memory, this process has 78.04 GiB memory in use.");
    REQUIRE(fresh);
    CHECK(fresh->tried_gib == Approx(2.32));
    CHECK(fresh->in_use_gib == Approx(78.04));
    CHECK(fresh->need_gib == Approx(80.36));
    const auto container = read_out_of_memory(
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacty of "
        "39.39 "
        "GiB of which 14.44 MiB is free. Process 41823 has 39.37 GiB memory in use.");
    REQUIRE(container);
    CHECK(container->in_use_gib == Approx(39.39 - 14.44 / 1024));
    const auto middle = read_out_of_memory(
        "RuntimeError: CUDA out of memory. Tried to allocate 1.95 GiB (GPU 0; 39.59 GiB total capacity; 35.20 GiB "
        "already "
        "allocated; 1.27 GiB free; 36.02 GiB reserved in total by PyTorch)");
    REQUIRE(middle);
    CHECK(middle->in_use_gib == Approx(38.32));
    CHECK(tried_gib("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4294967296 bytes.") ==
          Approx(4.0));
    CHECK_FALSE(tried_gib("Tried to allocate nothing"));
    CHECK_FALSE(read_out_of_memory("CUDA error: out of memory"));
}

TEST_CASE("a very long line and odd bytes do no harm", "[measure]") {
    const std::string line = std::string(1u << 20, 'x') + " CUDA error: out of memory";
    CHECK(class_of(line) == "");  // beyond what is looked at
    CHECK(class_of("CUDA error: out of memory " + std::string(1u << 20, 'x')) == "oom_device");
    CHECK(class_of(std::string_view("\xff\xfe\0CUDA error: out of memory", 28)) == "oom_device");
}
