package io.fairq.spring;

import io.fairq.ClientOptions;

/** A bean of this type has a say in the options of the client, after the configuration. */
@FunctionalInterface
public interface FairqClientCustomizer {
    /**
     * Changes options.
     *
     * @param options what there is; {@link ClientOptions#observer} is set later (beans that are an {@link io.fairq.Observer} are told)
     * @return what to have instead
     */
    ClientOptions customize(ClientOptions options);
}
