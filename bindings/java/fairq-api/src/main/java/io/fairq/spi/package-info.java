/**
 * The calls of the shared library, as {@code io.fairq} makes them. For those who bring another way to call C; programs have
 * nothing to do with it, and it may change with any version.
 */
package io.fairq.spi;
