package io.fairq.spring;

import java.nio.charset.StandardCharsets;
import org.springframework.http.HttpHeaders;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;

/** A {@link Refusal} as a response of Spring's. */
public final class WebRefusal {
    private static final MediaType EVENTS = new MediaType(MediaType.TEXT_EVENT_STREAM, StandardCharsets.UTF_8);

    private WebRefusal() {}

    /**
     * The response with status, {@code Retry-After} and body.
     *
     * @param refusal why there is no permit
     * @param accept the header of the request, or null
     * @return JSON; or, for who accepts {@code text/event-stream}, the event {@code rejected}
     */
    public static ResponseEntity<byte[]> response(Refusal refusal, String accept) {
        boolean asEvent = accept != null && accept.toLowerCase(java.util.Locale.ROOT).contains(MediaType.TEXT_EVENT_STREAM_VALUE);
        String body = asEvent ? Wire.rejected(refusal) : refusal.json();
        ResponseEntity.BodyBuilder response = ResponseEntity.status(refusal.status())
                .contentType(asEvent ? EVENTS : MediaType.APPLICATION_JSON);
        refusal.retryAfter().ifPresent(seconds -> response.header(HttpHeaders.RETRY_AFTER, Long.toString(seconds)));
        return response.body(body.getBytes(StandardCharsets.UTF_8));
    }
}
