package io.fairq.spring.aop;

import io.fairq.Request;
import org.springframework.expression.Expression;

/**
 * What is known of a method before it is called.
 *
 * @param limiter the limiter's name
 * @param request what to ask for, but for the label
 * @param label its label, or null
 * @param async what holds its permits; null: the thread waits
 */
record LimitedMethod(String limiter, Request request, Expression label, AsyncHolding async) {}
