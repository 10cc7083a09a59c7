/** How {@link io.fairq.spring.FairLimit} works; applications need nothing of it. */
package io.fairq.spring.aop;
