package io.fairq.tests;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** Between a client and a server; it may swallow an answer, and close the connection that waits for it. */
final class Proxy implements AutoCloseable {
    private final URI to;
    private final ServerSocket listener;
    private final List<Socket> sockets = new CopyOnWriteArrayList<>();
    private final AtomicBoolean drop = new AtomicBoolean();
    private final AtomicInteger dropped = new AtomicInteger();

    Proxy(String url) throws IOException {
        to = URI.create(url);
        listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        Threads.start(this::accept);
    }

    String url() {
        return "redis://127.0.0.1:" + listener.getLocalPort();
    }

    void dropNextAnswer() {
        drop.set(true);
    }

    int dropped() {
        return dropped.get();
    }

    private void accept() {
        try {
            while (true) {
                Socket client = listener.accept();
                Socket server = new Socket(to.getHost(), to.getPort());
                sockets.addAll(List.of(client, server));
                Threads.start(() -> copy(client, server, false));
                Threads.start(() -> copy(server, client, true));
            }
        } catch (IOException closed) {
            // the test is over
        }
    }

    private void copy(Socket from, Socket into, boolean answers) {
        byte[] buffer = new byte[1 << 16];
        try (from; into) {
            InputStream in = from.getInputStream();
            OutputStream out = into.getOutputStream();
            for (int count = in.read(buffer); count >= 0; count = in.read(buffer)) {
                if (answers && drop.compareAndSet(true, false)) {
                    dropped.incrementAndGet();
                    return;
                }
                out.write(buffer, 0, count);
                out.flush();
            }
        } catch (IOException closed) {
            // by either side
        }
    }

    @Override
    public void close() throws IOException {
        listener.close();
        for (Socket socket : sockets) {
            socket.close();
        }
    }
}
