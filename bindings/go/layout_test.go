package fairq

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"fairq/internal/capi"
	"fairq/internal/layout"
)

// abiTable is what tests/abi/layout.txt says, by the first two words of its lines.
func abiTable(t *testing.T) map[string][]uint64 {
	file, err := os.Open("../../tests/abi/layout.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	table := make(map[string][]uint64)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		key := words[0] + " " + words[1]
		for _, word := range words[2:] {
			n, err := strconv.ParseUint(word, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			table[key] = append(table[key], n)
		}
	}
	return table
}

// headerTable is the same of the header that cgo has read.
func headerTable() map[string][]uint64 {
	table := make(map[string][]uint64)
	for name, of := range layout.Structs() {
		table["struct "+name] = []uint64{uint64(of.Size()), uint64(of.Align())}
		for i := 0; i < of.NumField(); i++ {
			field := of.Field(i)
			if field.Name != "_" { // a gap
				table["field "+name+"."+field.Name] = []uint64{uint64(field.Offset), uint64(field.Type.Size())}
			}
		}
	}
	for name, value := range layout.Constants() {
		table["const "+name] = []uint64{value}
	}
	return table
}

func TestTheHeaderIsLaidOutAsTheTableSays(t *testing.T) {
	said, is := abiTable(t), headerTable()
	for key := range is {
		if said[key] == nil {
			t.Errorf("the table has no %s", key)
		}
	}
	for key, want := range said {
		if !reflect.DeepEqual(is[key], want) {
			t.Errorf("%s is %v and not %v", key, is[key], want)
		}
	}
}

func TestGoHasTheHeadersConstants(t *testing.T) {
	header := layout.Constants()
	ours := map[string]uint64{
		"FQ_FOREVER": capi.Forever, "FQ_DEFAULT": capi.Default, "FQ_OK": capi.OK,
		"FQ_SCOPE_CLIENT": capi.ScopeClient, "FQ_SCOPE_LIMITER": capi.ScopeLimiter, "FQ_SCOPE_CHANGE": capi.ScopeChange,
		"FQ_REPORT_POSITION": capi.ReportPosition, "FQ_REPORT_PERMIT": capi.ReportPermit,
		"FQ_EVENT_DONE": capi.EventDone, "FQ_EVENT_POSITION": capi.EventPosition,
		"FQ_EVENT_PERMIT_UNCONFIRMED": capi.EventPermitUnconfirmed,
		"FQ_EVENT_PERMIT_CONFIRMED":   capi.EventPermitConfirmed, "FQ_EVENT_PERMIT_LOST": capi.EventPermitLost,
		"FQ_PERMIT_STATE_VALID": uint64(PermitValid), "FQ_PERMIT_STATE_UNCONFIRMED": uint64(PermitUnconfirmed),
		"FQ_PERMIT_STATE_LOST": uint64(PermitLost), "FQ_PERMIT_STATE_RELEASED": uint64(PermitReleased),
		"FQ_PERMIT_STATE_NONE": capi.PermitNone,
	}
	for status := ErrTimedOut; status <= ErrInternal; status++ {
		name := "FQ_" + strings.ToUpper(strings.ReplaceAll(status.String(), " ", "_"))
		ours[name] = uint64(status)
	}
	if !reflect.DeepEqual(ours, header) {
		t.Errorf("ours:   %v\nheader: %v", ours, header)
	}
}

func TestEveryStatusHasItsSentinel(t *testing.T) {
	sentinels := map[string]StatusCode{
		"timed out": ErrTimedOut, "cancelled": ErrCancelled, "closed": ErrClosed, "queue full": ErrQueueFull,
		"impossible": ErrImpossible, "revoked": ErrRevoked, "permit lost": ErrPermitLost, "stale": ErrStale,
		"unavailable": ErrUnavailable, "unknown outcome": ErrUnknownOutcome, "overloaded": ErrOverloaded,
		"invalid": ErrInvalid, "configuration": ErrConfiguration, "server": ErrServer,
		"no such limiter": ErrNoSuchLimiter, "forked": ErrForked, "panic": ErrPanic, "internal": ErrInternal,
	}
	for name, status := range sentinels {
		if status.String() != name {
			t.Errorf("%d is %q for the library, and not %q", status, status, name)
		}
	}
	if len(sentinels) != int(ErrInternal) {
		t.Errorf("%d of %d", len(sentinels), ErrInternal)
	}
}

func TestTheLibrarysVersionIsTheHeaders(t *testing.T) {
	header := capi.HeaderVersion()
	if got := fmt.Sprintf("%d.%d.%d", header[0], header[1], header[2]); got != capi.Version() {
		t.Errorf("the header is %s, the library %s", got, capi.Version())
	}
	if versionProblem != nil {
		t.Error(versionProblem)
	}
	cases := []struct {
		library string
		header  [3]int
		fits    bool
	}{
		{"0.1.0", [3]int{0, 1, 0}, true},
		{"0.1.7", [3]int{0, 1, 0}, true},
		{"0.2.0", [3]int{0, 1, 0}, false},
		{"0.1.0", [3]int{0, 2, 0}, false},
		{"1.5.0", [3]int{1, 2, 3}, true},
		{"1.1.9", [3]int{1, 2, 0}, false},
		{"2.0.0", [3]int{1, 2, 0}, false},
		{"nonsense", [3]int{0, 1, 0}, false},
	}
	for _, c := range cases {
		if err := checkVersion(c.library, c.header); (err == nil) != c.fits {
			t.Errorf("library %s, header %v: %v", c.library, c.header, err)
		}
	}
}
