package io.fairq.spring.aop;

import io.fairq.Permit;

/** Holds a permit for what a method has returned, if that ends later than the method. */
public interface ValueHolding {
    /**
     * Takes the permit over, and gives it back when the value has come to its end.
     *
     * @param permit a permit
     * @param value what a method has returned under it
     * @return what to return instead; null: the value has no later end, and the permit is still the caller's
     */
    Object hold(Permit permit, Object value);
}
