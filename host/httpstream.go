package host

import (
	"bytes"
	"strconv"
	"strings"
)

// httpStream follows one direction of an HTTP/1.1 connection as its bytes pass,
// to know where messages begin and end. It checks nothing: what it does not
// understand makes it opaque, and it sees nothing more.
type httpStream struct {
	began func(httpHead) (hasBody bool) // a head is complete
	ended func()                        // and its message too

	state streamState
	line  []byte // that is not complete
	head  httpHead
	left  int64 // of the body or chunk
}

// httpHead is what matters of a message's first lines.
type httpHead struct {
	first   string // "GET / HTTP/1.1"
	length  int64  // -1: not said
	chunked bool
	upgrade bool
}

type streamState int

const (
	inHead streamState = iota
	inBody
	inChunkSize
	inChunk
	inTrailer
	untilClose
	opaque
)

// maxHeadLine is the longest line of a head that is followed.
const maxHeadLine = 64 << 10

func (s *httpStream) feed(p []byte) {
	for len(p) > 0 {
		switch s.state {
		case inBody, inChunk:
			n := min(s.left, int64(len(p)))
			p = p[n:]
			if s.left -= n; s.left == 0 {
				s.bodyEnded()
			}
		case untilClose, opaque:
			return
		default:
			at := bytes.IndexByte(p, '\n')
			if at < 0 {
				s.keep(p)
				return
			}
			s.keep(p[:at])
			p = p[at+1:]
			line := strings.TrimSuffix(string(s.line), "\r")
			s.line = s.line[:0]
			s.take(line)
		}
	}
}

func (s *httpStream) keep(p []byte) {
	if s.line = append(s.line, p...); len(s.line) > maxHeadLine {
		s.state = opaque
	}
}

// take is given each line outside bodies.
func (s *httpStream) take(line string) {
	switch {
	case s.state == inHead && s.head.first == "":
		if line != "" { // an empty line before a message is allowed
			s.head = httpHead{first: line, length: -1}
		}
	case s.state == inHead && line == "":
		s.headEnded()
	case s.state == inHead:
		s.field(line)
	case s.state == inChunkSize:
		s.chunk(line)
	case s.state == inTrailer && line == "":
		s.messageEnded()
	}
}

func (s *httpStream) field(line string) {
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	switch strings.ToLower(name) {
	case "content-length":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 {
			s.state = opaque
			return
		}
		s.head.length = n
	case "transfer-encoding":
		s.head.chunked = strings.EqualFold(value, "chunked")
	case "upgrade":
		s.head.upgrade = true
	}
}

func (s *httpStream) headEnded() {
	head := s.head
	hasBody := s.began(head)
	switch {
	case !hasBody || head.length == 0:
		s.messageEnded()
	case head.chunked:
		s.state = inChunkSize
	case head.length > 0:
		s.state, s.left = inBody, head.length
	default:
		s.state = untilClose
	}
}

// chunk is given the line with a chunk's size; the chunk ends with a line break
// of its own.
func (s *httpStream) chunk(line string) {
	size, _, _ := strings.Cut(line, ";")
	n, err := strconv.ParseInt(strings.TrimSpace(size), 16, 64)
	switch {
	case err != nil || n < 0:
		s.state = opaque
	case n == 0:
		s.state = inTrailer
	default:
		s.state, s.left = inChunk, n+int64(len("\r\n"))
	}
}

func (s *httpStream) bodyEnded() {
	if s.state == inChunk {
		s.state = inChunkSize
		return
	}
	s.messageEnded()
}

func (s *httpStream) messageEnded() {
	s.state, s.head = inHead, httpHead{}
	s.ended()
}

// request takes the first line of a request apart.
func (h httpHead) request() (method, target string) {
	method, rest, _ := strings.Cut(h.first, " ")
	target, _, _ = strings.Cut(rest, " ")
	return method, target
}

// safe says whether a request changes nothing (RFC 9110, section 9.2.1).
func (h httpHead) safe() bool {
	method, _ := h.request()
	return (method == "GET" || method == "HEAD") && !h.upgrade
}

// requestHasBody is the rule for requests: only if they say so.
func (h httpHead) requestHasBody() bool { return h.chunked || h.length > 0 }

// status is the code of an answer, 0 if there is none to be seen.
func (h httpHead) status() int {
	_, rest, _ := strings.Cut(h.first, " ")
	code, _, _ := strings.Cut(rest, " ")
	n, _ := strconv.Atoi(code)
	return n
}
