package io.fairq.spring;

import io.fairq.Observer;
import io.fairq.StatusCode;
import java.time.Duration;
import java.util.List;

/** Tells all of them. */
record Observers(List<Observer> all) implements Observer {
    @Override
    public void requestEnded(String limiter, StatusCode outcome, Duration waited) {
        all.forEach(one -> one.requestEnded(limiter, outcome, waited));
    }

    @Override
    public void permitGivenBack(String limiter, Duration held) {
        all.forEach(one -> one.permitGivenBack(limiter, held));
    }

    @Override
    public void permitLost(String limiter) {
        all.forEach(one -> one.permitLost(limiter));
    }

    @Override
    public void permitLeaked(String limiter) {
        all.forEach(one -> one.permitLeaked(limiter));
    }
}
