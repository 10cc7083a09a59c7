package gateway;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.fairq.Limiter;
import io.fairq.LimiterStatus;
import io.fairq.NoSuchLimiterException;
import io.fairq.Permit;
import io.fairq.Request;
import io.fairq.spring.FairqProperties;
import io.fairq.spring.Limiters;
import io.fairq.spring.mvc.FairSse;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter.SseEventBuilder;

/** Asks the model, under a permit. */
@RestController
class Gateway {
    private static final int LONGEST_QUESTION = 500;

    private final Limiter chat;
    private final FairqProperties.OfLimiter declared;
    private final FairSse sse;
    private final Model model;
    private final ObjectMapper json;

    Gateway(Limiters limiters, FairqProperties properties, FairSse sse, Model model, ObjectMapper json) {
        this.chat = limiters.get("rag:chat");
        this.declared = properties.limiters().get("rag:chat");
        this.sse = sse;
        this.model = model;
        this.json = json;
    }

    @PostMapping("/ask")
    SseEmitter askByPost(@RequestBody String question) {
        return ask(question);
    }

    /** Waits in line, and shows the client its place; who cannot wait is told, with 429 or 503 if nothing was sent before. */
    @GetMapping("/ask")
    SseEmitter ask(@RequestParam(name = "q", defaultValue = "") String question) {
        String asked = question.substring(0, Math.min(question.length(), LONGEST_QUESTION));
        return sse.sse(chat, Request.ofDefaults(), (events, permit) -> answer(asked, events, permit));
    }

    /** The permit goes back when this returns; a client that has gone ends it by an exception. */
    private void answer(String question, SseEmitter events, Permit permit) throws Exception {
        events.send(event("start", Map.of("fence", permit.fence(), "order", permit.order())));
        List<Corpus.Passage> passages = Corpus.retrieve(question);
        events.send(event("sources", Map.of("passages", passages)));
        for (String token : model.answer(passages)) {
            events.send(event("token", Map.of("text", token)));
        }
        events.send(event("done", Map.of()));
    }

    /** {@code at}, our clock, lets load.py of the other gateway count how many ran at once. */
    private SseEventBuilder event(String name, Map<String, Object> data) throws JsonProcessingException {
        Map<String, Object> all = new HashMap<>(data);
        all.put("at", System.currentTimeMillis() / 1000.0);
        return FairSse.event(name, json.writeValueAsString(all));
    }

    /** What the panel shows. */
    @GetMapping("/status")
    Map<String, Object> status() {
        try {
            LimiterStatus now = chat.status();
            Long maxQueue = now.maxQueue().isPresent() ? now.maxQueue().getAsLong() : null;
            Double estimate = now.estimate().map(time -> time.toMillis() / 1000.0).orElse(null);
            return shown(now.limit(), now.used(), now.waiting(), maxQueue, estimate, now.instances());
        } catch (NoSuchLimiterException nobodyHasAskedYet) {
            return shown(declared.limit(), 0, 0, Long.valueOf(declared.maxQueue()), 0.0, 1);
        }
    }

    private static Map<String, Object> shown(
            long limit, long running, long waiting, Long maxQueue, Double estimate, long processes) {
        Map<String, Object> shown = new HashMap<>(); // which takes null
        shown.put("limit", limit);
        shown.put("running", running);
        shown.put("waiting", waiting);
        shown.put("max_queue", maxQueue);
        shown.put("estimate", estimate);
        shown.put("processes", processes);
        return shown;
    }
}
