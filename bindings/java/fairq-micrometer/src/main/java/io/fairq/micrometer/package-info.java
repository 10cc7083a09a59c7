/** Meters of limiters and of what becomes of requests, for Micrometer. */
package io.fairq.micrometer;
