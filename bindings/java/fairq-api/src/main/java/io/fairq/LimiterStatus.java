package io.fairq;

import java.time.Duration;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * How a limiter stands.
 *
 * @param name its name
 * @param limit how much cost may be held at once
 * @param used the cost that is held
 * @param holders permits that are held
 * @param waiting requests in line
 * @param paused whether an operator has paused it
 * @param maxQueue how many may wait; empty for no bound
 * @param maxWait how long a request waits that does not say so; empty for ever
 * @param lease how long the store believes in a process that has stopped talking
 * @param maxHold how long a permit may be held; empty for no bound
 * @param grantedTotal permits given since the limiter came to be
 * @param instances live instances that use it
 * @param epoch changes whenever the store has lost state
 * @param grace for how long nobody is admitted yet, after a loss of state; zero in quiet times
 * @param typicalHold mean time a permit is held; empty while not known
 * @param estimate how long a newcomer is likely to wait; empty while not known
 * @param overshootTotal cost that came back over the limit after losses of state, since the limiter came to be
 */
public record LimiterStatus(
        String name,
        long limit,
        long used,
        long holders,
        long waiting,
        boolean paused,
        OptionalLong maxQueue,
        Optional<Duration> maxWait,
        Duration lease,
        Optional<Duration> maxHold,
        long grantedTotal,
        long instances,
        long epoch,
        Duration grace,
        Optional<Duration> typicalHold,
        Optional<Duration> estimate,
        long overshootTotal) {

    /** From the {@code fq_limiter_info} that is there. */
    static LimiterStatus read(String name, Scratch info) {
        long maxQueue = info.int64(Abi.Info.MAX_QUEUE);
        return new LimiterStatus(
                name,
                info.int64(Abi.Info.LIMIT),
                info.int64(Abi.Info.USED),
                info.int64(Abi.Info.HOLDERS),
                info.int64(Abi.Info.WAITING),
                info.int32(Abi.Info.PAUSED) != 0,
                maxQueue == Abi.FOREVER ? OptionalLong.empty() : OptionalLong.of(maxQueue),
                Millis.known(info.int64(Abi.Info.MAX_WAIT_MS)),
                Duration.ofMillis(info.int64(Abi.Info.LEASE_MS)),
                Millis.known(info.int64(Abi.Info.MAX_HOLD_MS)),
                info.int64(Abi.Info.GRANTED_TOTAL),
                info.int64(Abi.Info.INSTANCES),
                info.int64(Abi.Info.EPOCH),
                Duration.ofMillis(info.int64(Abi.Info.GRACE_MS)),
                Millis.known(info.int64(Abi.Info.TYPICAL_HOLD_MS)),
                Millis.known(info.int64(Abi.Info.ESTIMATE_MS)),
                info.int64(Abi.Info.OVERSHOOT_TOTAL));
    }
}
