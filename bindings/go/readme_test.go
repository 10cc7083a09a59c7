package fairq_test

import (
	"os"
	"strings"
	"testing"
)

// The README's first lines are those that Example runs.
func TestTheReadmeShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	ok(t, err)
	example, err := os.ReadFile("example_test.go")
	ok(t, err)
	_, after, _ := strings.Cut(string(readme), "```go\n")
	code, _, found := strings.Cut(after, "```")
	equal(t, found, true)
	indented := "\t" + strings.TrimSuffix(strings.ReplaceAll(code, "\n", "\n\t"), "\t")
	if indented = strings.ReplaceAll(indented, "\n\t\n", "\n\n"); !strings.Contains(string(example), indented) {
		t.Errorf("Example is not\n%s", indented)
	}
}
