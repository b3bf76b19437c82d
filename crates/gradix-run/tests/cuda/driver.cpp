// A driver and a run-time compiler for CUDA that run everything on the processor: the functions of both that gradix calls.
//
// The compiler writes the source with emulator.h before it and calls the C++ compiler; compiled code is the bytes of a library
// after their number, and the driver loads it. EMULATOR_H, EMULATOR_FLAGS and EMULATOR_VERSION are defined when this
// file is compiled.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <unistd.h>

#include "threads.h"

typedef int Status;
static const Status OK = 0, OUT_OF_MEMORY = 2, NOT_FOUND = 500;
static const char *const TEXT = "no such thing";

// Whether threads and blocks run in the other order.
static std::atomic<int> reversed{0};

static threads::Emulated own;

// A kernel as compiled code has it.
struct Entry {
    threads::Kernel kernel;
    bool has_barriers;
};

static std::string temporary(const char *ending) {
    static std::mutex lock;
    static unsigned count = 0;
    std::lock_guard<std::mutex> guard(lock);
    const char *folder = getenv("TMPDIR");
    std::ostringstream name;
    name << (folder ? folder : "/tmp") << "/gradix-emulated-" << getpid() << "-" << count++ << ending;
    return name.str();
}

static std::string contents(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

// What a test wants to be different.
static int setting(const char *name, int usual) {
    const char *text = getenv(name);
    return text ? atoi(text) : usual;
}

extern "C" {

void emulator_reverse(int order) { reversed = order; }

Status cuInit(unsigned) { return OK; }
Status cuDriverGetVersion(int *version) { return *version = setting("EMULATOR_DRIVER", 12000), OK; }
Status cuDeviceGetCount(int *count) { return *count = setting("EMULATOR_DEVICES", 1), OK; }
Status cuDeviceGet(int *device, int) { return *device = 0, OK; }
Status cuDeviceGetName(char *name, int length, int) { return snprintf(name, (size_t)length, "the processor"), OK; }
Status cuDeviceGetAttribute(int *value, int which, int) { return *value = which == 75 ? 9 : 0, OK; }
Status cuDevicePrimaryCtxRetain(void **context, int) { return *context = (void *)TEXT, OK; }
Status cuCtxSetCurrent(void *) { return OK; }
Status cuCtxGetCurrent(void **context) { return *context = nullptr, OK; }
Status cuGetErrorString(Status, const char **text) { return *text = TEXT, OK; }
Status cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    const char *most = getenv("EMULATOR_BYTES");
    if (most && bytes > strtoull(most, nullptr, 10)) return OUT_OF_MEMORY;
    *address = (uint64_t)malloc(bytes);
    if (!*address) return OUT_OF_MEMORY;
    // What is read before it is written shows.
    memset((void *)*address, 0xff, bytes);
    return OK;
}
Status cuMemFree_v2(uint64_t address) { return free((void *)address), OK; }
Status cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) { return memcpy((void *)to, from, bytes), OK; }
Status cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) { return memcpy(to, (const void *)from, bytes), OK; }
typedef std::chrono::steady_clock Clock;
Status cuEventCreate(void **event, unsigned) { return *event = new Clock::time_point, OK; }
Status cuEventRecord(void *event, void *) { return *(Clock::time_point *)event = Clock::now(), OK; }
Status cuEventSynchronize(void *) { return OK; }
Status cuStreamWaitEvent(void *, void *, unsigned) { return OK; }
Status cuEventElapsedTime(float *milliseconds, void *start, void *end) {
    const std::chrono::duration<float, std::milli> taken = *(Clock::time_point *)end - *(Clock::time_point *)start;
    return *milliseconds = taken.count(), OK;
}
Status cuEventDestroy_v2(void *event) { return delete (Clock::time_point *)event, OK; }

Status cuModuleLoadData(void **module, const void *code) {
    uint64_t bytes;
    memcpy(&bytes, code, sizeof bytes);
    const std::string path = temporary(".so");
    std::ofstream(path, std::ios::binary).write((const char *)code + sizeof bytes, (std::streamsize)bytes);
    *module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!*module) fprintf(stderr, "%s\n", dlerror());
    unlink(path.c_str());
    if (*module) *(threads::Emulated **)dlsym(*module, "emulated") = &own;
    return *module ? OK : NOT_FOUND;
}
Status cuModuleUnload(void *) { return OK; }
Status cuModuleGetFunction(void **function, void *module, const char *name) {
    *function = dlsym(module, (std::string("emulated_") + name).c_str());
    return *function ? OK : NOT_FOUND;
}
Status cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared, void *, void **arguments, void **) {
    static std::mutex lock;
    std::lock_guard<std::mutex> guard(lock);
    if (gy != 1 || gz != 1 || by != 1 || bz != 1 || shared != 0 || gx == 0 || bx == 0 || bx > 1024) return NOT_FOUND;
    const Entry &entry = *(const Entry *)function;
    threads::run(own, entry.kernel, arguments[0], gx, bx, entry.has_barriers, reversed);
    return OK;
}

struct Program {
    std::string text, code, log;
};

Status nvrtcVersion(int *major, int *minor) { return *major = 12, *minor = EMULATOR_VERSION, OK; }
Status nvrtcGetNumSupportedArchs(int *count) { return *count = 2, OK; }
Status nvrtcGetSupportedArchs(int *known) { return known[0] = 80, known[1] = 90, OK; }
Status nvrtcCreateProgram(Program **program, const char *text, const char *, int, const char *const *, const char *const *) {
    return *program = new Program{text, "", ""}, OK;
}
Status nvrtcDestroyProgram(Program **program) { return delete *program, OK; }
Status nvrtcCompileProgram(Program *program, int count, const char *const *options) {
    const std::string source = temporary(".cpp"), library = temporary(".so"), log = temporary(".log");
    std::ofstream file(source);
    file << "#include \"" EMULATOR_H "\"\n" << program->text << "\n";
    const auto head = [&](int number) { return program->text.find(" gx_kernel_" + std::to_string(number) + "("); };
    for (int number = 0; head(number) != std::string::npos; number++) {
        const size_t start = head(number), end = program->text.find(" gx_kernel_", start + 1);
        const bool has_barriers = program->text.substr(start, end - start).find("__syncthreads") != std::string::npos;
        file << "static void call_" << number << "(void *call) { gx_kernel_" << number << "(*(gx_call *)call); }\n"
             << "extern \"C\" const struct { void (*kernel)(void *); bool has_barriers; } emulated_gx_kernel_" << number << " = {call_"
             << number << ", " << (has_barriers ? "true" : "false") << "};\n";
    }
    file.close();
    std::string command = "env -u LD_PRELOAD c++ -std=c++11 -O1 -w -shared -fPIC " EMULATOR_FLAGS;
    for (int i = 0; i < count; i++)
        if (!strncmp(options[i], "-D", 2)) command += std::string(" ") + options[i];
    const int status = system((command + " -o " + library + " " + source + " > " + log + " 2>&1").c_str());
    program->log = contents(log);
    const std::string bytes = contents(library);
    const uint64_t length = bytes.size();
    program->code = std::string((const char *)&length, sizeof length) + bytes;
    unlink(log.c_str());
    unlink(library.c_str());
    unlink(source.c_str());
    return status == 0 ? OK : 6;
}
Status nvrtcGetCUBINSize(Program *program, size_t *size) { return *size = program->code.size(), OK; }
Status nvrtcGetCUBIN(Program *program, char *code) { return memcpy(code, program->code.data(), program->code.size()), OK; }
Status nvrtcGetProgramLogSize(Program *program, size_t *size) { return *size = program->log.size() + 1, OK; }
Status nvrtcGetProgramLog(Program *program, char *log) {
    return memcpy(log, program->log.c_str(), program->log.size() + 1), OK;
}
}
