package client

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/sled/events"
)

// The client passes each beginning and end of an operation on once, and loses none, if an agent breaks off
// its answer. Those of the past come together, also if there are none.
func TestOperationsAreToldOnceAcrossAgents(t *testing.T) {
	operation := func(id, result string) string {
		return fmt.Sprintf("event: operation\ndata: {\"id\":%q,\"result\":%q,\"verb\":\"instance ensure\"}\n\n", id, result)
	}
	const whole = "event: whole\ndata: {}\n\n"
	answers := []string{
		whole + operation("1", "running") + whole + operation("1", "done") + whole + operation("2", "running"),
		operation("1", "done") + operation("2", "failed") + whole,
		"event: failure\ndata: {\"message\":\"over\"}\n\n",
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(answers[0]))
		answers = answers[1:]
	}))
	defer server.Close()
	c, err := New(server.URL, nil, "", new(net.Dialer).DialContext)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	err = c.FollowOperations(t.Context(), 7, func(all []events.Event) error {
		var batch []string
		for _, v := range all {
			batch = append(batch, v.ID+" "+string(v.Result))
		}
		told = append(told, strings.Join(batch, ","))
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "over") {
		t.Errorf("it ends with %v", err)
	}
	// 2 began in a batch that was broken off: it is told how it ended.
	if want := []string{"", "1 running", "1 done", "2 failed"}; !slices.Equal(told, want) {
		t.Errorf("it told %q, want %q", told, want)
	}
}
