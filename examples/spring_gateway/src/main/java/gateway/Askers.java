package gateway;

import io.fairq.FairqException;
import io.fairq.spring.FairLimit;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.stereotype.Component;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** Only for playing: askers without a browser, which opens no more than six connections to a server. */
@RestController
class Askers {
    private static final int MORE = 10;

    private final Asker asker;
    private final AtomicInteger count = new AtomicInteger();

    Askers(Asker asker) {
        this.asker = asker;
    }

    /** Ten more stand in line, as if others had asked. */
    @PostMapping("/askers")
    Map<String, Integer> open() {
        for (int number = 0; number < MORE; number++) {
            count.incrementAndGet();
            Thread thread = new Thread(this::run, "asker");
            thread.setDaemon(true);
            thread.start();
        }
        return Map.of("askers", count.get());
    }

    private void run() {
        try {
            asker.ask();
        } catch (FairqException refused) {
            // the line is full, or the wait too long
        } finally {
            count.decrementAndGet();
        }
    }

    /** Holds a permit as an answer does. */
    @Component
    static class Asker {
        private final Model model;

        Asker(Model model) {
            this.model = model;
        }

        @FairLimit(value = "rag:chat", label = "asker")
        public void ask() {
            for (String token : model.answer(Corpus.retrieve("How are crashes and outages handled?"))) {
                assert !token.isEmpty();
            }
        }
    }
}
