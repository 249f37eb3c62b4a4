package client

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/agent/api"
)

// Lines are told one time each, and none is lost, where an agent breaks off its answer: also among
// lines of the same second, and such as came in part.
func TestLinesAreToldOnceAcrossAgents(t *testing.T) {
	line := func(second int, text string) string {
		return fmt.Sprintf("event: line\ndata: {\"time\":\"2026-11-26T10:00:%02dZ\",\"instance\":\"web1\",\"text\":%q}\n\n", second, text)
	}
	const whole = "event: whole\ndata: {\"cut\":false}\n\n"
	answers := []string{
		line(1, "old") + line(5, "a") + line(5, "b") + line(5, "b") + whole + line(6, "in part"),
		line(5, "a") + line(5, "b") + line(5, "b") + line(5, "late") + line(6, "in part") + line(7, "c") + whole + line(7, "c") + whole,
		"event: failure\ndata: {\"message\":\"over\"}\n\n",
	}
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("last")+" "+r.URL.Query().Get("since"))
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(answers[0]))
		answers = answers[1:]
	}))
	defer server.Close()
	c, err := New(server.URL, nil, "", new(net.Dialer).DialContext)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var told []string
	err = c.FollowLogs(ctx, api.LogQuery{Instances: []string{"web1"}, Last: 3}, func(lines []api.LogLine, _ bool) error {
		for _, l := range lines {
			told = append(told, l.Text)
		}
		return nil
	}, func(string) {})
	if err == nil || !strings.Contains(err.Error(), "over") {
		t.Errorf("it ends with %v", err)
	}
	if want := []string{"old", "a", "b", "b", "late", "in part", "c", "c"}; !slices.Equal(told, want) {
		t.Errorf("it told %q, want %q", told, want)
	}
	if want := []string{"3 ", "10000 2026-11-26T10:00:03Z", "10000 2026-11-26T10:00:05Z"}; !slices.Equal(asked, want) {
		t.Errorf("it asked for %q, want %q", asked, want)
	}
}
