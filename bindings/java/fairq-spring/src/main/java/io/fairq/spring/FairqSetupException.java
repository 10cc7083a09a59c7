package io.fairq.spring;

/** The application cannot start, since fairq is not set up right. Spring Boot shows it without a stack trace. */
public class FairqSetupException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** For who reads the analysis. */
    private final String action;

    /**
     * What Spring Boot shows.
     *
     * @param description what is wrong
     * @param action what to do
     * @param cause what told of it, or null
     */
    public FairqSetupException(String description, String action, Throwable cause) {
        super(description, cause);
        this.action = action;
    }

    /**
     * What to do.
     *
     * @return a sentence
     */
    public String action() {
        return action;
    }
}
