package peers;

/** What a peer has to offer: a permit, and its way back. A worker has one of these, used by all its threads. */
interface Semaphore {
    /** Waits for a permit; returns what {@link #release} wants. */
    String acquire() throws InterruptedException;

    void release(String permit);
}
