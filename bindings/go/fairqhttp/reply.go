package fairqhttp

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
)

// errNoStream is what a handler gets that writes something else into an event stream.
var errNoStream = errors.New("fairqhttp: who waited with positions cannot be given a response that is no event stream")

// reply is one response, in at most two parts: events of the line, and what the handler says. The handler's goes out
// unchanged, unless the line has begun an event stream: then only another event stream fits, without its headers.
type reply struct {
	to     http.ResponseWriter
	waited bool        // the line has begun an event stream
	begun  bool        // the handler has begun its response
	header http.Header // the handler's, when the real one has gone out
	misfit int         // the status of a handler's response that does not fit
}

func newReply(w http.ResponseWriter) *reply { return &reply{to: w, header: make(http.Header)} }

// tell sends events of the line. With the first of them begins the response.
func (p *reply) tell(text string) error {
	if !p.waited {
		p.waited = true
		setStreamHeaders(p.to.Header())
		p.to.WriteHeader(http.StatusOK)
	}
	if _, err := io.WriteString(p.to, text); err != nil {
		return err
	}
	return flush(p.to)
}

// flush is what http.ResponseController does since Go 1.20.
func flush(w http.ResponseWriter) error {
	for {
		switch t := w.(type) {
		case interface{ FlushError() error }:
			return t.FlushError()
		case http.Flusher:
			t.Flush()
			return nil
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return errors.New("fairqhttp: this http.ResponseWriter cannot stream")
		}
	}
}

// finish ends the response, after the handler.
func (p *reply) finish() {
	if p.waited && !p.begun {
		p.WriteHeader(http.StatusOK) // as net/http would
	}
	if p.misfit != 0 {
		_ = p.tell(event("failed", failure{"failed", p.misfit, "The answer is no event stream."}))
	}
}

type failure struct {
	Error   string `json:"error"`
	Status  int    `json:"status"`
	Message string `json:"message"`
}

// --- what the handler calls

// Header is as http.ResponseWriter has it.
func (p *reply) Header() http.Header {
	if p.waited {
		return p.header
	}
	return p.to.Header()
}

// WriteHeader is as http.ResponseWriter has it.
func (p *reply) WriteHeader(status int) {
	informs := status >= 100 && status < 200 && status != http.StatusSwitchingProtocols
	switch {
	case !p.waited:
		p.begun = p.begun || !informs
		p.to.WriteHeader(status)
	case !p.begun && !informs:
		p.begun = true
		if status != http.StatusOK || !isPlainEventStream(p.header) {
			p.misfit = status
		}
	}
}

func isPlainEventStream(header http.Header) bool {
	isStream := strings.HasPrefix(strings.ToLower(header.Get("Content-Type")), "text/event-stream")
	return isStream && header.Get("Content-Encoding") == ""
}

// Write is as http.ResponseWriter has it.
func (p *reply) Write(data []byte) (int, error) {
	if err := p.begin(); err != nil {
		return 0, err
	}
	return p.to.Write(data)
}

// ReadFrom lets the server's own, such as sendfile, do it.
func (p *reply) ReadFrom(from io.Reader) (int64, error) {
	if err := p.begin(); err != nil {
		return 0, err
	}
	return io.Copy(p.to, from)
}

// Unwrap is for http.ResponseController.
func (p *reply) Unwrap() http.ResponseWriter { return p.to }

// begin begins the handler's response, if that has not been done. It fails if that cannot be sent.
func (p *reply) begin() error {
	if !p.begun {
		if p.waited {
			p.WriteHeader(http.StatusOK)
		}
		p.begun = true
	}
	if p.misfit != 0 {
		return errNoStream
	}
	return nil
}

// writer is the reply with those of the optional interfaces that the real one has.
func (p *reply) writer() http.ResponseWriter {
	_, flushes := p.to.(http.Flusher)
	_, hijacks := p.to.(http.Hijacker)
	hijacks = hijacks && !p.waited
	switch {
	case flushes && hijacks:
		return struct {
			*reply
			flusher
			hijacker
		}{p, flusher{p}, hijacker{p}}
	case flushes:
		return struct {
			*reply
			flusher
		}{p, flusher{p}}
	case hijacks:
		return struct {
			*reply
			hijacker
		}{p, hijacker{p}}
	}
	return p
}

type flusher struct{ of *reply }

// Flush is as http.Flusher has it.
func (f flusher) Flush() {
	if f.of.begin() == nil {
		f.of.to.(http.Flusher).Flush()
	}
}

type hijacker struct{ of *reply }

// Hijack is as http.Hijacker has it.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := h.of.to.(http.Hijacker).Hijack()
	if err == nil {
		h.of.begun = true
	}
	return conn, buffered, err
}
