package io.fairq.spring;

import io.fairq.Client;
import io.fairq.Limiter;
import java.util.Collection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The limiters of the application, by name. Those of the configuration are open from the start. */
public final class Limiters {
    private final Client client;
    private final Map<String, Limiter> open = new ConcurrentHashMap<>();

    Limiters(Client client, Map<String, FairqProperties.OfLimiter> declared) {
        this.client = client;
        declared.forEach((name, properties) -> open.put(name, Options.open(client, name, properties)));
    }

    /**
     * The limiter of that name: of the configuration, or one that others have declared, which this opens. Does not block.
     *
     * @param name 1 to 256 bytes of UTF-8
     * @return the limiter
     * @throws FairqSetupException when the configuration was meant to declare it, but for the brackets around its name
     */
    public Limiter get(String name) {
        Limiter known = open.get(name);
        return known != null ? known : open.computeIfAbsent(name, this::attach);
    }

    private Limiter attach(String name) {
        String stripped = name.replaceAll("[^A-Za-z0-9-]", "");
        if (!stripped.equals(name) && open.containsKey(stripped)) {
            throw new FairqSetupException(
                    "The configuration declares the limiter \"" + stripped + "\", and the application uses \"" + name + "\".",
                    "Write such a name in brackets, as in fairq.limiters[" + name + "].limit; in YAML with quotes around them.",
                    null);
        }
        return client.limiter(name);
    }

    /**
     * All that the configuration declares or somebody has asked for.
     *
     * @return as of now
     */
    public Collection<Limiter> all() {
        return java.util.List.copyOf(open.values());
    }
}
