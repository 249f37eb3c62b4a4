package world

import "sync"

// undecoded are the SMFs of a State that were read and not yet decoded: they are the
// largest part of a sled with many zones, and a command looks at those of one zone.
// State.Services has an empty Repository for each of them until then.
type undecoded struct {
	mu     sync.Mutex
	text   map[*Repository]string
	shapes shapes
}

// SMF is the SMF of a zone, or nil while the kernel has no such zone.
func (tx *Tx) SMF(zone string) *Repository {
	r := tx.State.Services[zone]
	tx.State.undecoded.decode(r)
	return r
}

// DecodeAll decodes all that was left undecoded, for a caller that looks at the whole state.
func (s *State) DecodeAll() {
	for _, r := range s.Services {
		s.undecoded.decode(r)
	}
}

func (u *undecoded) decode(r *Repository) {
	if u == nil || r == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	text, left := u.text[r]
	if !left {
		return
	}
	if err := u.shapes.decode(text, r); err != nil {
		panic("world: " + err.Error()) // It was whole in a transaction that was committed.
	}
	delete(u.text, r)
}

// keep has the text of an SMF for later.
func (u *undecoded) keep(r *Repository, text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.text[r] = text
}

// has says whether an SMF is not decoded yet.
func (u *undecoded) has(r *Repository) bool {
	if u == nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	_, left := u.text[r]
	return left
}

// smfTable leaves what it reads undecoded.
type smfTable struct{ table[Repository] }

func (t *smfTable) note(s *State, touched *Touched, out *writer) error {
	if touched == nil {
		s.DecodeAll()
		return t.table.note(s, nil, out)
	}
	for zone := range touched.services {
		if r := s.Services[zone]; r != nil && s.undecoded.has(r) {
			delete(touched.services, zone) // what was not decoded was not changed
		}
	}
	return t.table.note(s, touched, out)
}

func (t *smfTable) take(s *State, read []entry, _ shapes) error {
	for _, e := range read {
		if e.gone {
			delete(s.Services, e.key)
			continue
		}
		r := &Repository{}
		s.Services[e.key] = r
		s.undecoded.keep(r, e.text)
	}
	return nil
}
