/**
 * Calls of the shared library by {@code java.lang.foreign}. Programs use {@code io.fairq}; this has only to be in the class path,
 * and Java has to be run with {@code --enable-native-access=ALL-UNNAMED} (or {@code io.fairq.ffm}, as a module), or it warns.
 */
package io.fairq.ffm;
