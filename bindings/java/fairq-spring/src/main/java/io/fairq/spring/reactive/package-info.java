/** Limits for Reactor and Spring WebFlux; nothing here keeps a thread waiting. */
package io.fairq.spring.reactive;
