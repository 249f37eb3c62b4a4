package world

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// A state in a file is a log. Its first line is {"format":2}. Each other line is a
// key, a tab and JSON; without the JSON, the entry of this key is gone. A line with
// the key "commit" ends what a transaction has written, and gives the state's
// version. What stands behind the last of these was torn and does not count.
//
// Only the holder of the sled's lock writes, and only behind what is there. If more than
// a third of the file no longer counts, or its end is torn, the next writer
// replaces it by one with what does. So a reader needs no lock: it reads on from where it
// was, and begins at its start if the name leads to another file.

const (
	commitKey = "commit"
	slack     = 64 << 10 // bytes that no longer count, and are not worth a new file
)

// span is where in a file the JSON of an entry lies.
type span struct {
	at   int64
	size int
}

// logFile is a state's file, as far as it was read.
type logFile struct {
	file  *os.File // open, so that its inode is not used again
	info  os.FileInfo
	seen  int64 // how long it was
	end   int64 // behind the last commit
	live  int64 // bytes of lines that count
	spans map[string]span
	old   map[string][]byte // not nil: it has format 1, one JSON document, which has these entries
}

func openLog(name string) (*logFile, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &logFile{file: file, info: info, spans: map[string]span{}}, nil
}

// current says whether there is nothing to read, and whether the name still leads to this file.
func (l *logFile) current() (current, same bool, err error) {
	now, err := os.Stat(l.file.Name())
	if err != nil {
		return false, false, err
	}
	same = os.SameFile(now, l.info)
	return same && now.Size() == l.seen, same, nil
}

// torn says whether something stands behind the last commit.
func (l *logFile) torn() bool { return l.seen != l.end }

// wasteful says whether a third of the file does not count.
func (l *logFile) wasteful() bool { return l.end > l.live+l.live/2+slack }

// entry is what a file has last of a key.
type entry struct {
	key, text string
	gone      bool
}

// read reads on to the last commit: the entries that were written, and the version. No
// entries: nothing was committed meanwhile. All of them share one text.
func (l *logFile) read() (read []entry, version uint64, err error) {
	text, err := l.rest()
	if err != nil {
		return nil, 0, err
	}
	l.seen = l.end + int64(len(text))
	from := l.end
	if from == 0 {
		skip, err := checkFormat(text)
		if err != nil || skip == 0 {
			l.old, l.end = map[string][]byte{}, l.seen
			return []entry{{text: text}}, 0, err
		}
		text, from = text[skip:], int64(skip)
	}
	tail := strings.LastIndex(text, "\n"+commitKey+"\t")
	if tail >= 0 && strings.IndexByte(text[tail+1:], '\n') < 0 { // the commit itself is torn
		tail = strings.LastIndex(text[:tail], "\n"+commitKey+"\t")
	}
	if tail < 0 {
		return nil, 0, nil
	}
	text = text[:tail+1+strings.IndexByte(text[tail+1:], '\n')+1]
	lines := strings.Count(text, "\n")
	if len(l.spans) == 0 {
		l.spans = make(map[string]span, lines) // none is moved while it grows
	}
	at := make([]int64, 0, lines)
	read = make([]entry, 0, lines)
	again := false
	for line := range strings.Lines(text) {
		key, value, has := strings.Cut(line[:len(line)-1], "\t")
		if key == commitKey {
			if version, err = strconv.ParseUint(value, 10, 64); err != nil {
				return nil, 0, fmt.Errorf("commit: %w", err)
			}
		} else {
			known := l.enter(key, span{from + int64(len(key)) + 1, len(value)}, has)
			again = again || known || !has
			read, at = append(read, entry{key, value, !has}), append(at, from+int64(len(key))+1)
		}
		from += int64(len(line))
	}
	l.end = from
	if !again {
		return read, version, nil
	}
	kept := 0
	for i, e := range read {
		if now, there := l.spans[e.key]; there != e.gone && (e.gone || now.at == at[i]) { // the last of its key
			read[kept] = e
			kept++
		}
	}
	return read[:kept], version, nil
}

// rest is what stands behind the last commit.
func (l *logFile) rest() (string, error) {
	now, err := l.file.Stat()
	if err != nil {
		return "", err
	}
	text := make([]byte, max(0, now.Size()-l.end))
	n, err := l.file.ReadAt(text, l.end)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return unsafe.String(unsafe.SliceData(text), n), err // nobody else has these bytes
}

// enter notes where an entry lies now, or that it is gone, and says whether it was there.
func (l *logFile) enter(key string, s span, has bool) (known bool) {
	was, known := l.spans[key]
	if known {
		l.live -= int64(len(key) + was.size + 2)
	}
	if has {
		l.live += int64(len(key) + s.size + 2)
		l.spans[key] = s
	} else {
		delete(l.spans, key)
	}
	return known
}

// checkFormat is the length of the first line, or 0 for a file of format 1.
func checkFormat(text string) (int, error) {
	line, _, ended := strings.Cut(text, "\n")
	var head struct{ Format int }
	in := json.NewDecoder(strings.NewReader(text))
	if err := in.Decode(&head); err == nil && head.Format > Format {
		return 0, fmt.Errorf("%w: its format is %d, this one knows up to %d", ErrNewer, head.Format, Format)
	}
	if !ended || json.Unmarshal([]byte(line), &head) != nil || head.Format < Format {
		return 0, nil
	}
	return len(line) + 1, nil
}

// keys are those of the entries that count, sorted.
func (l *logFile) keys() []string {
	if l.old != nil {
		return slices.Sorted(maps.Keys(l.old))
	}
	return slices.Sorted(maps.Keys(l.spans))
}

// value reads an entry; nil: there is none.
func (l *logFile) value(key string) ([]byte, error) {
	if l.old != nil {
		return l.old[key], nil
	}
	s, there := l.spans[key]
	if !there {
		return nil, nil
	}
	data := make([]byte, s.size)
	_, err := l.file.ReadAt(data, s.at)
	return data, err
}

func (l *logFile) close() {
	if l != nil {
		_ = l.file.Close()
	}
}

// append adds a transaction at the end.
func (l *logFile) append(data []byte) error {
	file, err := os.OpenFile(l.file.Name(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}
