/** What operators see of the limiters: metrics of Micrometer's, and a health indicator of Actuator's. */
package io.fairq.spring.metrics;
