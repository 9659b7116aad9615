// Tasks on threads, shared by everything that passes over rows.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace robustbn {

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
    std::vector<std::thread> threads;
    try {
        for (size_t t = 1; t < std::min(size_t(std::max(n_threads, 1)), n); ++t)
            threads.emplace_back(work);
    } catch (const std::system_error&) {  // no more threads: those that are there do it all
    } catch (const std::bad_alloc&) {
    }
    work();
    for (auto& thread : threads) thread.join();
    if (error) std::rethrow_exception(error);
}

}  // namespace robustbn
