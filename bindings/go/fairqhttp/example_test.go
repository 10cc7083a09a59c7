package fairqhttp_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"fairq"
	"fairq/fairqhttp"
)

func Example() {
	client, err := fairq.Open("memory:example")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	chat, err := client.Limiter("rag:chat", fairq.Limit(4))
	if err != nil {
		log.Fatal(err)
	}
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "an answer, under a permit of cost", fairqhttp.PermitFrom(r.Context()).Cost())
	})
	limit := fairqhttp.Limit(chat, fairqhttp.MaxWait(15*time.Second))
	server := httptest.NewServer(limit(answer))
	defer server.Close()

	response, err := http.Get(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	fmt.Print(string(text))
	// Output: an answer, under a permit of cost 1
}

func ExampleRefuse() {
	// For handlers that acquire by themselves.
	var chat *fairq.Limiter
	http.HandleFunc("/ask", func(w http.ResponseWriter, r *http.Request) {
		permit, err := chat.Acquire(r.Context())
		if err != nil {
			fairqhttp.Refuse(w, r, err)
			return
		}
		defer permit.Close()
		ctx, cancel := permit.Context(r.Context())
		defer cancel()
		work(ctx)
	})
}

func work(context.Context) {}
