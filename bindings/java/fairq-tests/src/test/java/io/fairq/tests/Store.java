package io.fairq.tests;

import io.fairq.testing.RedisServer;

/** Each store that the tests run with. */
enum Store {
    MEMORY {
        @Override
        String url() {
            return "memory:";
        }
    },
    REDIS {
        @Override
        String url() {
            return Shared.SERVER.url();
        }
    };

    abstract String url();

    /** One server for all tests that leave it alone. */
    private static final class Shared {
        static final RedisServer SERVER = RedisServer.start();
    }
}
