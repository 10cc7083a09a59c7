/** What the tests of several modules share. */
package io.fairq.testing;
