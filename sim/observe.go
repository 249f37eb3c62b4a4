package sim

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
)

// Whose API an exchange is of, if it is not Propolis'.
const (
	OfSledAgent = "sled-agent"
	OfNexus     = "nexus" // its internal API
)

// Exchange is a request to a server of the sled, or to one near it, and its answer.
type Exchange struct {
	Of     string      `json:"of,omitempty"` // empty: Propolis
	Method string      `json:"method"`
	URI    string      `json:"uri"` // path and query
	Header http.Header `json:"header"`
	Body   []byte      `json:"body,omitempty"`
	// Status is 0 where the connection was broken off, 101 where it became a
	// websocket, whose contents are not reported.
	Status      int         `json:"status"`
	ReplyHeader http.Header `json:"reply_header,omitempty"`
	Reply       []byte      `json:"reply,omitempty"`
}

// ExchangesVariable names the environment variable that names a file to which
// every exchange is appended, one JSON object per line.
const ExchangesVariable = "SLEDCTL_SIM_EXCHANGES"

// Record appends exchanges to a file. What cannot be written is lost: the sled
// goes on.
func Record(name string) func(Exchange) {
	return func(e Exchange) {
		data, err := json.Marshal(e)
		if err != nil {
			return
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			return
		}
		defer f.Close()
		_, _ = f.Write(append(data, '\n'))
	}
}

// observed tells Observe of what a handler is asked and answers. A request whose sender
// died before its whole body had arrived is none, nor is one that was neither read nor answered.
func (s *Sled) observed(h http.Handler) http.Handler { return s.observedAs("", h) }

func (s *Sled) observedAs(of string, h http.Handler) http.Handler {
	if s.Observe == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := &observedBody{ReadCloser: r.Body}
		r.Body = body
		reply := &observedReply{ResponseWriter: w}
		e := Exchange{Of: of, Method: r.Method, URI: r.URL.RequestURI(), Header: r.Header.Clone()}
		defer func() {
			if reply.status != 0 && reply.status != http.StatusSwitchingProtocols {
				_, _ = io.Copy(io.Discard, body) // what was refused before it was read was said
			}
			if body.broke || reply.status == 0 && !body.ended && r.ContentLength != 0 {
				return
			}
			e.Body = body.read.Bytes()
			if e.Status = reply.status; e.Status != 0 {
				e.ReplyHeader, e.Reply = w.Header().Clone(), reply.body.Bytes()
			}
			s.Observe(e)
		}()
		h.ServeHTTP(reply, r)
	})
}

// observedBody keeps what was read of a request's body, and whether it broke off.
type observedBody struct {
	io.ReadCloser
	read  bytes.Buffer
	broke bool
	ended bool // all of it was read
}

// Read keeps what it reads.
func (b *observedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read.Write(p[:n])
	b.broke, b.ended = b.broke || err != nil && err != io.EOF, b.ended || err == io.EOF
	return n, err
}

// observedReply keeps what is answered.
type observedReply struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// WriteHeader keeps the status.
func (r *observedReply) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Write keeps the body.
func (r *observedReply) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	r.body.Write(p)
	return r.ResponseWriter.Write(p)
}

// Unwrap leads to what can be taken over by a websocket.
func (r *observedReply) Unwrap() http.ResponseWriter { return r.ResponseWriter }
