package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"fairq"
	"fairq/fairqhttp"
)

// gateway answers questions with a model that can give a few answers at once.
type gateway struct {
	chat      *fairq.Limiter
	perSecond float64 // tokens of the model
}

func (g *gateway) handler(web http.FileSystem) http.Handler {
	// Who waits for the model sees its place in line; ask begins only under a permit, and need not know it.
	limit := fairqhttp.Limit(g.chat, fairqhttp.Positions())
	mux := http.NewServeMux()
	mux.Handle("/ask", limit(http.HandlerFunc(g.ask)))
	mux.HandleFunc("/status", g.status)
	mux.HandleFunc("/askers", g.askers)
	mux.Handle("/static/", http.StripPrefix("/static", http.FileServer(web)))
	mux.Handle("/", http.FileServer(web))
	return mux
}

// ask streams an answer as server-sent events.
func (g *gateway) ask(w http.ResponseWriter, r *http.Request) {
	question := r.URL.Query().Get("q")
	if r.Method == http.MethodPost {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 500))
		question = string(body)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	tell := func(name string, data map[string]any) error {
		data["at"] = float64(time.Now().UnixMicro()) / 1e6 // lets load.py count how many ran at once
		text, err := json.Marshal(data)
		if err == nil {
			_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, text)
			w.(http.Flusher).Flush()
		}
		return err
	}
	permit := fairqhttp.PermitFrom(r.Context())
	found := retrieve(question)
	_ = tell("start", map[string]any{"fence": permit.Fence(), "order": permit.Order()})
	_ = tell("sources", map[string]any{"passages": found})
	err := stream(r.Context(), found, g.perSecond, func(token string) error {
		return tell("token", map[string]any{"text": token})
	})
	if err == nil {
		_ = tell("done", map[string]any{})
	}
}

// status is what the panel shows.
func (g *gateway) status(w http.ResponseWriter, r *http.Request) {
	now, err := g.chat.Status(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	shown := map[string]any{
		"limit": now.Limit, "running": now.Used, "waiting": now.Waiting, "processes": now.Instances,
		"max_queue": now.MaxQueue, "estimate": now.Estimate.Seconds(),
	}
	if now.MaxQueue == fairq.Unbounded {
		shown["max_queue"] = nil
	}
	if now.Estimate == fairq.Unknown {
		shown["estimate"] = nil
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(shown)
}

// askers puts ten more in line, as if others had asked. Only for playing: a browser opens six connections and no more.
func (g *gateway) askers(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "POST", http.StatusMethodNotAllowed)
		return
	}
	for i := 0; i < 10; i++ {
		go func() {
			permit, err := g.chat.Acquire(context.Background(), fairq.Label("asker"))
			if err != nil {
				return // the line is full, the wait too long, or we close
			}
			defer permit.Close()
			ctx, cancel := permit.Context(context.Background())
			defer cancel()
			_ = stream(ctx, retrieve("crashes and outages"), g.perSecond, func(string) error { return nil })
		}()
	}
	w.WriteHeader(http.StatusNoContent)
}
