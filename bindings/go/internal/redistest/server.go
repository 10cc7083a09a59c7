// Package redistest starts Redis servers for tests.
package redistest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Patience is after how long something is broken.
const Patience = 60 * time.Second

// Server is a redis-server on a port of this machine, with an empty temporary folder and nothing saved.
type Server struct {
	binary string
	folder string
	port   int
	cmd    *exec.Cmd
	exited chan struct{}
}

// Find is the redis-server to test with: FAIRQ_REDIS70, what PATH has, or what test.sh has installed. Without one the
// test is skipped, or fails where CI is true.
func Find(t testing.TB) string {
	t.Helper()
	if named := os.Getenv("FAIRQ_REDIS70"); named != "" {
		return named
	}
	if path, err := exec.LookPath("redis-server"); err == nil {
		return path
	}
	_, here, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(here), "..", "..", "..", "..")
	installed, _ := filepath.Glob(filepath.Join(root, "target", "servers", "*", "bin", "*-server"))
	if len(installed) > 0 {
		return installed[0]
	}
	const missing = "no redis-server: set FAIRQ_REDIS70, or install one"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// Start starts a server, which ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{binary: Find(t), folder: t.TempDir()}
	t.Cleanup(s.Kill)
	if err := s.launchSomewhere(); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Server) launchSomewhere() (err error) {
	for attempt := 0; attempt < 5; attempt++ { // another process may take the port first
		if s.port, err = freePort(); err == nil {
			if err = s.launch(); err == nil {
				return nil
			}
		}
	}
	return err
}

// URL is the server's, for fairq.Open.
func (s *Server) URL() string { return fmt.Sprintf("redis://127.0.0.1:%d", s.port) }

// Kill ends the server at once, if it runs. What it knew is lost.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
}

// Restart starts the server again, empty, after Kill.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.launch(); err != nil {
		t.Fatal(err)
	}
}

// Stop has the server stand still until Continue.
func (s *Server) Stop() { _ = s.cmd.Process.Signal(syscall.SIGSTOP) }

// Continue ends a Stop.
func (s *Server) Continue() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }

func (s *Server) launch() error {
	log := filepath.Join(s.folder, "log")
	s.cmd = exec.Command(s.binary, "--port", fmt.Sprint(s.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--dir", s.folder, "--logfile", log)
	s.cmd.SysProcAttr = diesWithParent()
	s.exited = make(chan struct{})
	started := make(chan error)
	go func() {
		// The server dies with the thread that has started it: this one, which lives as long as the server.
		runtime.LockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait()
			close(s.exited)
		}
	}()
	if err := <-started; err != nil {
		s.cmd = nil
		return err
	}
	return s.awaitAnswer(log)
}

func (s *Server) awaitAnswer(log string) error {
	deadline := time.Now().Add(Patience)
	for time.Now().Before(deadline) {
		select {
		case <-s.exited:
			text, _ := os.ReadFile(log)
			return fmt.Errorf("%s ended: %s", s.binary, text)
		case <-time.After(5 * time.Millisecond):
		}
		if answer, err := s.ask("PING"); err == nil && answer == "PONG" {
			return nil
		}
	}
	return fmt.Errorf("%s does not answer", s.binary)
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// Do sends a command and returns the answer: a line, or the elements of an array by lines.
func (s *Server) Do(t testing.TB, words ...string) string {
	t.Helper()
	answer, err := s.ask(words...)
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
	return answer
}
