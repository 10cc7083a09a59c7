/** Limits in Spring MVC: event streams that show clients their place in line, and responses that hold a permit. */
package io.fairq.spring.mvc;
