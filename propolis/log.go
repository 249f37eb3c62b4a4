package propolis

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/sledctl/sledctl/host"
)

// A server tells its clients nothing of what failed inside it: a 500 is
// "Internal Server Error". Its log does, in the line "request completed" of the
// request's id (dropshot/src/server.rs); if the request killed the server, the log
// has its last messages.

// Log is the file that a server's output goes to.
type Log struct {
	Root string // of its zone, as the host names it
	File string // within it
}

// How much of the log's end is read, in bytes, and for how long: a server writes
// its log next to answering.
//
// Guess log-line-within-half-a-second: the log has the line of a failed request within 0.5 s of the
// answer; a panic's words stand in the same log.
// Check: `instance ensure` with a disk that does not exist; with a bootrom of 100 bytes
const (
	logTail     = 256 << 10
	logPatience = 500 * time.Millisecond
	logPause    = 5 * time.Millisecond
)

// why finds out of the log why a request failed; "" if the log does not tell.
func (l Log) why(ctx context.Context, h host.Host, find func(tail []byte) string) string {
	if l.File == "" {
		return ""
	}
	deadline := time.Now().Add(logPatience)
	for pause := logPause; ; pause *= 2 {
		tail, err := l.tail(h.Files())
		if err != nil {
			return ""
		}
		if cause := find(tail); cause != "" || !time.Now().Add(pause).Before(deadline) {
			return cause
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ""
		}
	}
}

// tail is the end of the log, read through a view that cannot leave the zone: a
// guest may have planted links there.
func (l Log) tail(files host.Files) ([]byte, error) {
	root, err := files.In(l.Root)
	if err != nil {
		return nil, err
	}
	data, _, err := host.Tail(root, l.File, logTail)
	return data, err
}

// causeOf is what the log says about a request.
func causeOf(id string) func(tail []byte) string {
	return func(tail []byte) string {
		for line := range bytes.Lines(tail) {
			if !bytes.Contains(line, []byte(id)) {
				continue
			}
			var entry struct {
				Request string `json:"req_id"`
				Cause   string `json:"error_message_internal"`
			}
			if json.Unmarshal(line, &entry) == nil && entry.Request == id && entry.Cause != "" {
				return printable(entry.Cause)
			}
		}
		return ""
	}
}

// lastWords are those of a server that has panicked.
func lastWords(tail []byte) string {
	words := ""
	for line := range bytes.Lines(tail) {
		if bytes.Contains(line, []byte("panicked")) && !bytes.HasPrefix(line, []byte("{")) {
			words = printable(string(line))
		}
	}
	return words
}

// maxCause is how much of the log is repeated, in bytes.
const maxCause = 1000

// printable is text on one line, without what a terminal would act upon.
func printable(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, text)
	return strings.ToValidUTF8(text[:min(len(text), maxCause)], "")
}
