package main

import (
	"context"
	_ "embed"
	"regexp"
	"sort"
	"strings"
	"time"
)

//go:embed corpus.txt
var corpus string

// passage is what an answer may rest on.
type passage struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

var passages = func() (all []passage) {
	for _, entry := range strings.Split(strings.TrimSpace(corpus), "\n\n") {
		title, text, _ := strings.Cut(entry, "\n")
		all = append(all, passage{title, text})
	}
	return all
}()

var word = regexp.MustCompile(`[a-z]{4,}`) // shorter ones say little

// retrieve finds the passages that have the most words of the question; none, if none has one.
func retrieve(question string) []passage {
	score := func(p passage) (found int) {
		text := strings.ToLower(p.Title + " " + p.Text)
		for _, asked := range word.FindAllString(strings.ToLower(question), -1) {
			found += strings.Count(text, strings.TrimSuffix(asked, "s"))
		}
		return found
	}
	best := append([]passage(nil), passages...)
	sort.SliceStable(best, func(i, j int) bool { return score(best[i]) > score(best[j]) })
	for i, p := range best {
		if i == 2 || score(p) == 0 {
			return best[:i]
		}
	}
	return best
}

// stream stands in for a language model: it says the answer word by word, as slowly as a real one, until the context
// ends.
func stream(ctx context.Context, from []passage, perSecond float64, say func(token string) error) error {
	answer := "The documents say nothing about that. Try asking about the limit, the order, crashes, Redis or goroutines."
	if len(from) > 0 {
		answer = ""
		for _, p := range from {
			answer += p.Text + " "
		}
	}
	tick := time.NewTicker(time.Duration(float64(time.Second) / perSecond))
	defer tick.Stop()
	for _, token := range strings.SplitAfter(strings.TrimSpace(answer), " ") {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := say(token); err != nil {
			return err
		}
	}
	return nil
}
