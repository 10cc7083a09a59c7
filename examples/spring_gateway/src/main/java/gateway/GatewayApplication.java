package gateway;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** A gateway to a slow model: at most a few answers at once, over all processes, and a fair line in front. */
@SpringBootApplication
public class GatewayApplication {
    public static void main(String[] arguments) {
        SpringApplication.run(GatewayApplication.class, arguments);
    }
}
