/**
 * fairq for Spring Boot 3: a {@link io.fairq.Client}, the {@link io.fairq.spring.Limiters} of the configuration, and
 * {@link io.fairq.spring.FairLimit} for methods of beans.
 */
package io.fairq.spring;
