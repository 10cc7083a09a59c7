package io.fairq.spring;

import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Shows what is wrong with the configuration in two sentences. */
class SetupFailureAnalyzer extends AbstractFailureAnalyzer<FairqSetupException> {
    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, FairqSetupException cause) {
        return new FailureAnalysis(cause.getMessage(), cause.action(), cause);
    }
}
