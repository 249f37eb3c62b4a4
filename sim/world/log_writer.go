package world

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// writer collects what a transaction has to write.
type writer struct {
	log *logFile // what is there; nil: nothing
	buf bytes.Buffer
	new map[string][]byte // nil: gone
	err error
}

// newFile is a writer whose file has nothing yet.
func newFile() *writer {
	w := &writer{}
	fmt.Fprintf(&w.buf, "{\"format\":%d}\n", Format)
	return w
}

// put writes an entry down unless it is there as it is.
func (w *writer) put(key string, entry any) error {
	if w.err != nil {
		return w.err
	}
	data, err := json.Marshal(entry)
	if err != nil {
		w.err = err
		return err
	}
	if was, err := w.was(key); err != nil || bytes.Equal(was, data) {
		w.err = err
		return err
	}
	w.line(key, data)
	return nil
}

// was is an entry as it will be stored so far; nil: there is none.
func (w *writer) was(key string) ([]byte, error) {
	if data, written := w.new[key]; written || w.log == nil {
		return data, nil
	}
	return w.log.value(key)
}

// drop writes down that an entry is gone.
func (w *writer) drop(key string) {
	if w.err != nil {
		return
	}
	if was, err := w.was(key); err != nil || was == nil {
		w.err = err
		return
	}
	w.line(key, nil)
}

func (w *writer) line(key string, data []byte) {
	if w.new == nil {
		w.new = map[string][]byte{}
	}
	w.new[key] = data
	w.buf.WriteString(key)
	if data != nil {
		w.buf.WriteByte('\t')
		w.buf.Write(data)
	}
	w.buf.WriteByte('\n')
}

// commit ends a transaction.
func (w *writer) commit(version uint64) []byte {
	fmt.Fprintf(&w.buf, "%s\t%d\n", commitKey, version)
	return w.buf.Bytes()
}
