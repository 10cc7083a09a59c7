// Command gateway answers questions with a slow model, a few answers at once over all its processes, and has everybody
// else stand in a fair line, which the page shows. It is examples/rag_gateway in Go, and serves the same page.
//
//	cd bindings/go
//	go run ./examples/gateway
//	FAIRQ_URL=redis://localhost go run ./examples/gateway -listen :8001   # any number of them
package main

import (
	"context"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"fairq"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8000", "address to serve at")
	web := flag.String("web", "../../examples/rag_gateway/static", "folder of the page")
	limit := flag.Uint64("limit", 3, "answers at once, over all processes")
	maxQueue := flag.Uint64("max-queue", 12, "how many may wait")
	maxWait := flag.Duration("max-wait", 30*time.Second, "how long one waits")
	perSecond := flag.Float64("tokens", 20, "tokens per second of the model")
	flag.Parse()

	client, err := fairq.Open(os.Getenv("FAIRQ_URL"), fairq.Description("gateway "+*listen))
	check(err)
	chat, err := client.Limiter("rag:chat", fairq.Limit(*limit), fairq.MaxQueue(*maxQueue), fairq.MaxWait(*maxWait))
	check(err)
	gateway := &gateway{chat, *perSecond}
	server := &http.Server{
		Addr: *listen, Handler: gateway.handler(http.Dir(*web)), ReadHeaderTimeout: 5 * time.Second,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	log.Printf("http://%s", *listen)

	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	select {
	case err := <-ended:
		log.Fatal(err)
	case <-stop.Done():
		shutDown(client, server)
	}
}

// shutDown tells who waits at once that we close, and lets answers that have begun come to their end.
func shutDown(client *fairq.Client, server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = client.Shutdown(ctx)
	_ = server.Shutdown(ctx)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
