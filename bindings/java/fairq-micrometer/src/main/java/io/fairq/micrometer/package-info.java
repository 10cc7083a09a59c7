/** Meters for Micrometer: of what becomes of requests, and of how limiters stand. */
package io.fairq.micrometer;
