package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"fairq"
)

func start(t *testing.T, perSecond float64) (*gateway, string) {
	t.Helper()
	client, err := fairq.Open(fmt.Sprintf("memory:gateway-%d-%s", os.Getpid(), t.Name()))
	check(err)
	chat, err := client.Limiter("rag:chat", fairq.Limit(1), fairq.MaxQueue(3))
	check(err)
	g := &gateway{chat, perSecond}
	server := httptest.NewServer(g.handler(http.Dir("../../../../examples/rag_gateway/static")))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		_ = client.Close()
	})
	return g, server.URL
}

// names are the names of the events of an answer, one for each run of the same.
func names(t *testing.T, response *http.Response) string {
	t.Helper()
	var all []string
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		name := strings.TrimPrefix(lines.Text(), "event: ")
		if name != lines.Text() && (len(all) == 0 || all[len(all)-1] != name) {
			all = append(all, name)
		}
	}
	return strings.Join(all, " ")
}

func ask(t *testing.T, url string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, "GET", url+"/ask?q=Is+the+order+fair", nil)
	check(err)
	response, err := http.DefaultClient.Do(request)
	check(err)
	t.Cleanup(func() { response.Body.Close() })
	return response
}

func TestAnAnswer(t *testing.T) {
	_, url := start(t, 10_000)
	if got := names(t, ask(t, url)); got != "start sources token done" {
		t.Error(got)
	}
}

func TestWhoWaitsSeesItsPlace(t *testing.T) {
	g, url := start(t, 10_000)
	held, err := g.chat.Acquire(context.Background())
	check(err)
	waiting := ask(t, url)
	response, err := http.Get(url + "/status")
	check(err)
	defer response.Body.Close()
	var status struct{ Limit, Running, Waiting int }
	check(json.NewDecoder(response.Body).Decode(&status))
	if status.Limit != 1 || status.Running != 1 || status.Waiting != 1 {
		t.Errorf("%+v", status)
	}
	check(held.Close())
	if got := names(t, waiting); got != "position start sources token done" {
		t.Error(got)
	}
}

func TestAFullLine(t *testing.T) {
	g, url := start(t, 10_000)
	held, err := g.chat.Acquire(context.Background())
	check(err)
	defer held.Close()
	response, err := http.Post(url+"/askers", "", nil)
	check(err)
	response.Body.Close()
	for refused := ask(t, url); ; refused = ask(t, url) {
		if refused.StatusCode == http.StatusTooManyRequests {
			if got := names(t, refused); got != "rejected" {
				t.Error(got)
			}
			return
		}
		refused.Body.Close() // it was before the askers
	}
}

func TestWhatIsFound(t *testing.T) {
	for question, title := range map[string]string{
		"Is the order fair?":                   "Order and fairness",
		"What happens when a process crashes?": "Crashes",
		"What if Redis loses its data?":        "When Redis loses its data",
		"Can I close the tab?":                 "Closing the tab",
	} {
		if found := retrieve(question); len(found) == 0 || found[0].Title != title {
			t.Errorf("%s: %v", question, found)
		}
	}
	if found := retrieve("xyzzy"); len(found) != 0 {
		t.Error(found)
	}
}
