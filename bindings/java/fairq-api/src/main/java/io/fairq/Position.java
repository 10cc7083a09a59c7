package io.fairq;

import java.time.Duration;
import java.util.Optional;

/**
 * Where a request stands in line.
 *
 * @param position 1 is next
 * @param estimate how long it is likely to wait still; empty while that is not known
 */
public record Position(long position, Optional<Duration> estimate) {}
