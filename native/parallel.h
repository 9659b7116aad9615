// Tasks on threads, shared by everything that passes over rows.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace robustbn {

// Whether this thread has what its first exception needs. The C library takes that memory when it is
// first asked for, and ends the process where there is none left: so it is asked for while there is
// some, and a thread that starts without does nothing.
inline bool can_throw() {
    void* volatile spare = std::malloc(1 << 16);
    if (!spare) return false;
    std::free(spare);
    volatile int n_thrown = std::uncaught_exceptions();
    return n_thrown >= 0;
}

// Run task(0) ... task(n - 1) on up to n_threads threads; fewer if the system gives fewer. The
// first exception stops the rest and is thrown again here.
inline void run_parallel(size_t n, int n_threads, const std::function<void(size_t)>& task) {
    std::atomic<size_t> next{0};
    std::exception_ptr error;
    std::mutex error_mutex;
    auto work = [&] {
        try {
            for (size_t i; (i = next++) < n;) task(i);
        } catch (...) {
            next = n;
            const std::lock_guard<std::mutex> lock(error_mutex);
            if (!error) error = std::current_exception();
        }
    };
    auto help = [&] {
        if (can_throw()) work();
    };
    std::vector<std::thread> threads;
    try {
        for (size_t t = 1; t < std::min(size_t(std::max(n_threads, 1)), n); ++t)
            threads.emplace_back(help);
    } catch (const std::system_error&) {  // no more threads: those that are there do it all
    } catch (const std::bad_alloc&) {
    }
    work();
    for (auto& thread : threads) thread.join();
    if (error) std::rethrow_exception(error);
}

}  // namespace robustbn
