package gateway;

import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** A small corpus, and a search in it that is good enough for an example. */
final class Corpus {
    private static final int FOUND = 2;

    /** A paragraph that an answer may rest on. */
    record Passage(String title, String text) {}

    private static final List<Passage> PASSAGES = List.of(
            new Passage(
                    "The limit",
                    "The cost of all permits that are held never exceeds the limit, over all processes and in any language. When "
                            + "an operator lowers the limit nothing is taken away; no new permit is given until use is below it."),
            new Passage(
                    "Order and fairness",
                    "Permits are given in the order of arrival at Redis, exactly. A newcomer never takes a free slot while "
                            + "somebody waits. With costs above one the head of the line waits until its cost fits."),
            new Passage(
                    "Crashes",
                    "A process that is killed or crashes gives its permits and its places in line back within the lease, which "
                            + "is ten seconds by default. The lease is about the process and not about its requests."),
            new Passage(
                    "When Redis loses its data",
                    "After a restart without data or a FLUSHALL, every live process puts back what it holds and waits for, in "
                            + "the original order. Nobody is admitted for two thirds of a lease, so that holders come first."),
            new Passage(
                    "Outages",
                    "While Redis is away, what is held stays held. Those who wait keep their place until their deadline; or "
                            + "fail at once; or are admitted locally up to a small number for each process."),
            new Passage(
                    "Streaming",
                    "A streamed answer holds its permit until the last byte of its body has gone out, not until the first, and "
                            + "gives it back when the client disconnects in the middle."),
            new Passage(
                    "Closing the tab",
                    "Who closes the tab while waiting leaves the line, and everybody behind moves up. Who closes it while the "
                            + "answer streams stops the model, and the next in line begins."));

    private static final Set<String> TOO_COMMON = Set.of((
                    "a an and are as at be by can do does for from happens how i if in is it me my of on or so that the this to what "
                            + "when who why with you")
            .split(" "));

    private Corpus() {}

    /** The passages that have the most to do with the question; none, if none has. */
    static List<Passage> retrieve(String question) {
        Set<String> asked = words(question);
        return PASSAGES.stream()
                .filter(passage -> score(passage, asked) > 0)
                .sorted(Comparator.comparingLong((Passage passage) -> score(passage, asked)).reversed())
                .limit(FOUND)
                .toList();
    }

    /** What is in the title counts more. */
    private static long score(Passage passage, Set<String> asked) {
        return 2 * common(words(passage.title), asked) + common(words(passage.text), asked);
    }

    private static long common(Set<String> words, Set<String> asked) {
        return words.stream().filter(asked::contains).count();
    }

    /** The words that say what a text is about, without their plural's endings. */
    private static Set<String> words(String text) {
        return Stream.of(text.toLowerCase(Locale.ROOT).split("[^a-z]+"))
                .filter(word -> !word.isEmpty() && !TOO_COMMON.contains(word))
                .map(word -> word.replaceFirst("e?s?$", ""))
                .collect(Collectors.toSet());
    }
}
