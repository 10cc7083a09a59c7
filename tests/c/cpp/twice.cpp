// Another translation unit with the same headers, in another order and more than once.
#include <fairq.h>
#include <fairq.hpp>
#include <fairq.h>
#include <fairq.hpp>

fairq::status acquire_elsewhere(const fairq::limiter& limiter) {
    return limiter.try_acquire().status();
}
