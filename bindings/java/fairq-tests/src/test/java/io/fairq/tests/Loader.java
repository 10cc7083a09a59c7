package io.fairq.tests;

import io.fairq.Client;

/** Loads the library, and says how, or twice why not. */
final class Loader {
    private Loader() {}

    public static void main(String[] arguments) {
        for (int turn = 0; turn < 2; turn++) {
            try (Client client = Client.open("memory:")) {
                System.out.println(Client.provider() + " " + Client.libraryVersion() + " " + client.getClass().getSimpleName());
            } catch (UnsatisfiedLinkError error) {
                System.out.println("refused: " + error.getMessage());
            }
        }
    }
}
