//go:build go1.20

package fairqhttp_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"fairq"
	"fairq/fairqhttp"
)

func TestAResponseControllerFindsTheServersWriter(t *testing.T) {
	for _, waits := range []bool{false, true} {
		limiter := newLimiter(t, fairq.Limit(1))
		var handler http.HandlerFunc = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			control := http.NewResponseController(w)
			deadlines := []error{control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{})}
			fmt.Fprintf(w, "data: %v %v\n\n", deadlines, control.Flush())
		}
		url := serve(t, fairqhttp.Limit(limiter, fairqhttp.Positions())(handler))
		held := acquire(t, limiter)
		if !waits {
			ok(t, held.Close())
		}
		response := get(t, url)
		ok(t, held.Close())
		equal(t, strings.HasSuffix(text(t, response), "data: [<nil> <nil>] <nil>\n\n"), true)
	}
}
