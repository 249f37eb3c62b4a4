package world

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
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

// read reads on to the last commit: the entries by their keys, nil for one that is gone,
// and the version. No entries: nothing was committed meanwhile.
func (l *logFile) read() (read map[string][]byte, version uint64, err error) {
	now, err := l.file.Stat()
	if err != nil {
		return nil, 0, err
	}
	data := make([]byte, max(0, now.Size()-l.end))
	n, err := l.file.ReadAt(data, l.end)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	data = data[:n]
	l.seen = l.end + int64(n)
	from := l.end
	if from == 0 {
		skip, err := checkFormat(data)
		if err != nil || skip == 0 {
			l.old, l.end = map[string][]byte{}, l.seen
			return map[string][]byte{"": data}, 0, err
		}
		data, from = data[skip:], int64(skip)
	}
	tail := bytes.LastIndex(data, []byte("\n"+commitKey+"\t"))
	if bytes.IndexByte(data[tail+1:], '\n') < 0 && tail >= 0 { // the commit itself is torn
		tail = bytes.LastIndex(data[:tail], []byte("\n"+commitKey+"\t"))
	}
	if tail < 0 {
		return nil, 0, nil
	}
	data = data[:tail+1+bytes.IndexByte(data[tail+1:], '\n')+1]
	read = map[string][]byte{}
	at := from
	for line := range bytes.Lines(data) {
		key, value, has := bytes.Cut(line[:len(line)-1], []byte("\t"))
		switch {
		case string(key) != commitKey:
			l.enter(string(key), span{at + int64(len(key)) + 1, len(value)}, has)
			if read[string(key)] = nil; has {
				read[string(key)] = value
			}
		default:
			if err := json.Unmarshal(value, &version); err != nil {
				return nil, 0, fmt.Errorf("commit: %w", err)
			}
		}
		at += int64(len(line))
	}
	l.end = at
	return read, version, nil
}

// enter notes where an entry lies now, or that it is gone.
func (l *logFile) enter(key string, s span, has bool) {
	if was, there := l.spans[key]; there {
		l.live -= int64(len(key) + was.size + 2)
		delete(l.spans, key)
	}
	if has {
		l.live += int64(len(key) + s.size + 2)
		l.spans[key] = s
	}
}

// checkFormat is the length of the first line, or 0 for a file of format 1.
func checkFormat(data []byte) (int, error) {
	line, _, ended := bytes.Cut(data, []byte("\n"))
	var head struct{ Format int }
	in := json.NewDecoder(bytes.NewReader(data))
	if err := in.Decode(&head); err == nil && head.Format > Format {
		return 0, fmt.Errorf("%w: its format is %d, this one knows up to %d", ErrNewer, head.Format, Format)
	}
	if !ended || json.Unmarshal(line, &head) != nil || head.Format < Format {
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
