package propolis_test

import (
	"testing"

	"github.com/sledctl/sledctl/propolis"
)

func TestALineOfTheLogIsReadable(t *testing.T) {
	for line, want := range map[string]string{
		`{"msg":"request completed","v":0,"name":"propolis-server","level":30,"time":"2026-11-24T23:25:38Z","hostname":"web1","pid":7,"uri":"/instance","response_code":500}`: "2026-11-24T23:25:38Z info request completed response_code=500 uri=/instance",
		`{"msg":"lost","level":45,"why":null}`: "45 lost why=",
		`{"msg":"","level":50}`:                "error",
		`{"level":50}`:                         `{"level":50}`,
		`{"msg":"half`:                         `{"msg":"half`,
		"thread 'main' panicked at src/x.rs":   "thread 'main' panicked at src/x.rs",
		"":                                     "",
	} {
		if got := propolis.ReadableLine(line); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
