package io.fairq;

/** The structs and constants of {@code include/fairq.h} on 64-bit machines. A test compares them with {@code tests/abi}. */
final class Abi {
    static final long FOREVER = 9223372036854775807L;
    static final long DEFAULT = 9223372036854775806L;

    static final int REPORT_POSITION = 1;
    static final int REPORT_PERMIT = 2;

    static final int PERMIT_STATE_NONE = 4;

    static final int EVENT_DONE = 0;
    static final int EVENT_POSITION = 1;
    static final int EVENT_PERMIT_UNCONFIRMED = 2;
    static final int EVENT_PERMIT_CONFIRMED = 3;
    static final int EVENT_PERMIT_LOST = 4;

    private Abi() {}

    /** {@code fq_option}. */
    static final class Option {
        static final int SIZE = 32;
        static final int SCOPE = 0;
        static final int KEY = 8;
        static final int DEFAULT_VALUE = 16;
        static final int DOC = 24;

        private Option() {}
    }

    /** {@code fq_request}. */
    static final class Asked {
        static final int SIZE = 40;
        static final int FLAGS = 4;
        static final int MAX_WAIT_MS = 8;
        static final int COST = 16;
        static final int LABEL = 24;
        static final int LABEL_LEN = 32;

        private Asked() {}
    }

    /** {@code fq_limiter_info}. */
    static final class Info {
        static final int SIZE = 128;
        static final int PAUSED = 4;
        static final int LIMIT = 8;
        static final int USED = 16;
        static final int HOLDERS = 24;
        static final int WAITING = 32;
        static final int MAX_QUEUE = 40;
        static final int MAX_WAIT_MS = 48;
        static final int LEASE_MS = 56;
        static final int MAX_HOLD_MS = 64;
        static final int GRANTED_TOTAL = 72;
        static final int INSTANCES = 80;
        static final int EPOCH = 88;
        static final int GRACE_MS = 96;
        static final int TYPICAL_HOLD_MS = 104;
        static final int ESTIMATE_MS = 112;
        static final int OVERSHOOT_TOTAL = 120;

        private Info() {}
    }

    /** {@code fq_position}. */
    static final class Place {
        static final int SIZE = 16;
        static final int POSITION = 0;
        static final int ESTIMATE_MS = 8;

        private Place() {}
    }

    /** {@code fq_event}. */
    static final class Event {
        static final int SIZE = 48;
        static final int TOKEN = 0;
        static final int KIND = 8;
        static final int STATUS = 12;
        static final int PERMIT = 16;
        static final int ERROR = 24;
        static final int POSITION = 32;
        static final int ESTIMATE_MS = 40;

        private Event() {}
    }
}
