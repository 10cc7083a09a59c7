package redistest

import (
	"os"
	"sync"
	"testing"
)

var shared struct {
	once   sync.Once
	server *Server
	folder string
}

// Shared is a server for all tests of a process that need nothing special of it; see EndShared.
func Shared(t testing.TB) *Server {
	t.Helper()
	binary := Find(t)
	var err error
	shared.once.Do(func() {
		if shared.folder, err = os.MkdirTemp("", "fairq-redis-"); err == nil {
			server := &Server{binary: binary, folder: shared.folder}
			if err = server.launchSomewhere(); err == nil {
				shared.server = server
			}
		}
	})
	if shared.server == nil {
		t.Fatalf("no server: %v", err)
	}
	return shared.server
}

// EndShared ends the server of Shared, if there is one. For TestMain, after the tests.
func EndShared() {
	if shared.server != nil {
		shared.server.Kill()
	}
	if shared.folder != "" {
		_ = os.RemoveAll(shared.folder)
	}
}
