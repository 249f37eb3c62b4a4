package dropshot

import (
	"encoding/json"
	"testing"
)

func TestAnErrorSaysWhatTheServerSaid(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"a code":               {424, `{"request_id":"r1","error_code":"NoInstance","message":"Server not initialized (no instance)"}`, "PUT /x: 424 Server not initialized (no instance)"},
		"only a code tells":    {404, `{"request_id":"r1","error_code":"NO_SUCH_INSTANCE","message":"Not Found"}`, "PUT /x: 404 NO_SUCH_INSTANCE"},
		"one for the log":      {500, `{"request_id":"r1","error_code":"Internal","message":"Internal Server Error"}`, "PUT /x: 500 Internal Server Error (for the reason, see the server's log: req_id r1)"},
		"another kind of body": {502, "<html>\n  bad gateway</html>", "PUT /x: 502 <html> bad gateway</html>"},
		"no body":              {503, "", "PUT /x: 503 Service Unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decode("PUT", "/x", c.status, []byte(c.body)).Error(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// FuzzErrors: whatever an error holds, its text is not empty.
func FuzzErrors(f *testing.F) {
	for _, text := range []string{`{"request_id":"r","error_code":"NoInstance","message":"m"}`, `null`, `[]`, ``} {
		f.Add([]byte(text), 200)
	}
	f.Fuzz(func(t *testing.T, data []byte, status int) {
		if e := Decode("GET", "/", status, data); e.Message == "" && json.Valid(data) && len(data) > 0 && status == 500 {
			t.Errorf("%s: an error without a text", data)
		}
	})
}
