package host

import "sync"

// Memo keeps what was found out about a machine and does not change while we
// run, as an option that one of its commands lacks: so that it is found out
// once and not for every call. The zero Memo is empty. It is safe for
// concurrent use.
type Memo struct {
	mu    sync.Mutex
	known map[any]any
	above *Memo // of the host that this one lies over: what is not known here may be there
}

// remembering is a Host with a Memo, or one that lies over such a one.
type remembering interface{ memo() *Memo }

// Recall gives what Remember was told under the key. A host without a memory
// knows nothing.
func Recall[T any](h Host, key any) (value T, known bool) {
	for m := memoOf(h); m != nil && !known; m = m.above {
		m.mu.Lock()
		value, known = m.known[key].(T)
		m.mu.Unlock()
	}
	return value, known
}

// Remember keeps a value for as long as the Host is used. Keys are values of a
// type of the package that remembers.
func Remember(h Host, key, value any) {
	m := memoOf(h)
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[any]any{}
	}
	m.known[key] = value
}

// Remembering is h with a memory of its own: what it is told is forgotten with
// it, and h does not learn of it.
func Remembering(h Host) Host { return remembers{h, &Memo{above: memoOf(h)}} }

type remembers struct {
	Host
	own *Memo
}

func (r remembers) memo() *Memo              { return r.own }
func (r remembers) forAction(id string) Host { return remembers{ForAction(r.Host, id), r.own} }

func memoOf(h Host) *Memo {
	if r, ok := h.(remembering); ok {
		return r.memo()
	}
	return nil
}

func (h *Illumos) memo() *Memo  { return &h.remembered }
func (t *traced) memo() *Memo   { return memoOf(t.host) }
func (r readOnly) memo() *Memo  { return memoOf(r.host) }
func (c *Crashing) memo() *Memo { return memoOf(c.host) }
