package format

import (
	"encoding/json"
	"iter"
)

// Facts are the last values of a text's keys. They never change. The zero Facts hold
// none.
type Facts struct {
	index *index
	data  []byte // that it is the index of
}

// Facts finds the last value of each key, once for all copies that are alike. An
// error is a *Damage.
func (t *Text) Facts() (Facts, error) {
	x, err := t.indexed()
	return Facts{x, t.data}, err
}

// Get returns the value of a key. It lies in the text's memory: do not change it.
func (f Facts) Get(key string) (json.RawMessage, bool) {
	if f.index == nil {
		return nil, false
	}
	at, ok := f.index.get(f.data, key)
	return f.at(at), ok
}

// All yields the keys that open with prefix, sorted, with their values.
func (f Facts) All(prefix string) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		if f.index == nil {
			return
		}
		for _, k := range f.index.under(f.data, prefix) {
			if !yield(string(k.name(f.data)), f.at(k.place)) {
				return
			}
		}
	}
}

// at is the value in a place; nil: there is none.
func (f Facts) at(p place) json.RawMessage {
	if p.length == 0 {
		return nil
	}
	end := p.start + int(p.length)
	return f.data[p.start:end:end]
}
