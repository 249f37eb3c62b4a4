package nexus

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// Sent is a request to a sled's agent, and its answer, which is zero where none came.
type Sent struct {
	*http.Request
	Body   []byte
	Status int
	Header http.Header
	Reply  []byte
}

// send asks the agent of a sled for something. Without a body, nothing is sent as one.
func (p Plane) send(ctx context.Context, sled, method, path string, body any) (Sent, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var sent Sent
	if body != nil {
		var err error
		if sent.Body, err = json.Marshal(body); err != nil {
			return sent, err
		}
	}
	host, token := "sled", ""
	if address, tcp := strings.CutPrefix(sled, "tcp:"); tcp {
		host = address
	}
	if err := p.view(ctx, func(_ *world.Tx, n *world.Nexus) error { token = n.Token; return nil }); err != nil {
		return sent, err
	}
	var err error
	if sent.Request, err = http.NewRequestWithContext(ctx, method, "http://"+host+path, bytes.NewReader(sent.Body)); err != nil {
		return sent, err
	}
	sent.Request.Header.Set("api-version", agentVersion)
	if body != nil {
		sent.Request.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		sent.Request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return p.Dial(ctx, sled) }}
	reply, err := transport.RoundTrip(sent.Request)
	if err != nil {
		return sent, err
	}
	defer reply.Body.Close()
	if sent.Reply, err = io.ReadAll(io.LimitReader(reply.Body, maxBody)); err != nil {
		return sent, err
	}
	sent.Status, sent.Header = reply.StatusCode, reply.Header
	if p.Observe != nil {
		p.Observe(sent)
	}
	return sent, nil
}

// ask sends a request that must succeed, and reads its answer.
func ask[T any](ctx context.Context, p Plane, sled, method, path string, body any) (answer T, err error) {
	sent, err := p.send(ctx, sled, method, path, body)
	if err == nil && sent.Status/100 != 2 {
		err = fmt.Errorf("%s %s: %d %s", method, path, sent.Status, sent.Reply)
	}
	if err == nil && len(sent.Reply) > 0 {
		err = json.Unmarshal(sent.Reply, &answer)
	}
	return answer, err
}

// tell is ask for what has no answer.
func (p Plane) tell(ctx context.Context, sled, method, path string, body any) error {
	_, err := ask[any](ctx, p, sled, method, path, body)
	return err
}
