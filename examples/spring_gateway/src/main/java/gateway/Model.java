package gateway;

import java.util.Iterator;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;

/** Stands in for a language model: as slow as a real one, and used like the client of one. */
@Component
class Model {
    private static final Pattern TOKEN = Pattern.compile("\\S+\\s*");
    private static final double SECOND = 1000;

    private final long pause;

    Model(@Value("${gateway.tokens-per-second}") double tokensPerSecond) {
        this.pause = Math.round(SECOND / tokensPerSecond);
    }

    /** The answer, token by token; an interrupt ends it. */
    Iterable<String> answer(List<Corpus.Passage> passages) {
        Iterator<String> tokens =
                TOKEN.matcher(text(passages)).results().map(MatchResult::group).iterator();
        return () -> new Iterator<>() {
            @Override
            public boolean hasNext() {
                return tokens.hasNext();
            }

            @Override
            public String next() {
                try {
                    Thread.sleep(pause);
                } catch (InterruptedException stopped) {
                    Thread.currentThread().interrupt();
                    throw new IllegalStateException("the model was stopped", stopped);
                }
                return tokens.next();
            }
        };
    }

    private static String text(List<Corpus.Passage> passages) {
        return passages.isEmpty()
                ? "The documents say nothing about that. Try asking about the limit, the order, crashes, Redis or streaming."
                : passages.stream().map(Corpus.Passage::text).collect(Collectors.joining(" "));
    }
}
