/*
 * At most two at once, over all processes that share the Redis; everybody else waits in line.
 *
 *     c++ -std=c++17 limit.cpp $(pkg-config --cflags --libs fairq) -o limit
 *     ./limit redis://127.0.0.1/        (or nothing: for this process alone)
 */
#include <fairq.hpp>

#include <chrono>
#include <iostream>

static void work(const fairq::limiter& chat) {
    fairq::request request;
    request.max_wait = std::chrono::seconds(15);
    request.label = "tenant 7";
    try {
        const fairq::permit permit = chat.acquire(request);
        // ... stream; stop when permit.is_valid() is false ...
        std::cout << "at work with the permit number " << permit.fence() << '\n';
    } catch (const fairq::queue_full& busy) {
        std::cout << "busy; come back in " << busy.retry_after().value_or(std::chrono::seconds(1)).count() << " ms\n";
    } // the permit is given back in the background
}

int main(int argc, char** argv) {
    try {
        const fairq::client client(argc > 1 ? argv[1] : "memory:");
        work(client.limiter("rag:chat", fairq::config().set("limit", 2).set("max_queue", 100)));
        client.close();
    } catch (const fairq::error& error) {
        std::cerr << fairq::name_of(error.status()) << ": " << error.what() << '\n';
        return 1;
    }
}
