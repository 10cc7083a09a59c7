/** Calls of the shared library by JNA. Programs use {@code io.fairq}; this has only to be in the class path. */
package io.fairq.jna;
