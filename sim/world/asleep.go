package world

import "sync"

// asleep are the SMFs of a State that nobody has looked at since they were read: the
// largest part of a sled with many zones, and each is of interest to the commands of one
// zone alone. In State.Services stands an empty Repository meanwhile.
type asleep struct {
	mu     sync.Mutex
	text   map[*Repository][]byte
	shapes shapes
}

// SMF is the SMF of a zone, or nil while the kernel has no such zone.
func (tx *Tx) SMF(zone string) *Repository {
	r := tx.State.Services[zone]
	tx.State.asleep.wake(r)
	return r
}

// Wake reads what of the state nobody has looked at yet: for those who look at all of it.
func (s *State) Wake() {
	for _, r := range s.Services {
		s.asleep.wake(r)
	}
}

func (a *asleep) wake(r *Repository) {
	if a == nil || r == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	text, sleeps := a.text[r]
	if !sleeps {
		return
	}
	if err := a.shapes.decode(text, r); err != nil {
		panic("world: " + err.Error()) // It was whole in a transaction that was committed.
	}
	delete(a.text, r)
}

// lay has an SMF sleep.
func (a *asleep) lay(r *Repository, text []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text[r] = text
}

// sleeps says whether nobody has looked at an SMF.
func (a *asleep) sleeps(r *Repository) bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text[r] != nil
}

// smfTable leaves what it reads asleep.
type smfTable struct{ table[Repository] }

func (t *smfTable) note(s *State, touched *Touched, out *writer) error {
	if touched == nil {
		s.Wake()
		return t.table.note(s, nil, out)
	}
	for zone := range touched.services {
		if r := s.Services[zone]; r != nil && s.asleep.sleeps(r) {
			delete(touched.services, zone) // nobody has changed what nobody has seen
		}
	}
	return t.table.note(s, touched, out)
}

func (t *smfTable) take(s *State, read map[string][]byte, _ shapes) error {
	for zone, text := range read {
		if text == nil {
			delete(s.Services, zone)
			continue
		}
		r := &Repository{}
		s.Services[zone] = r
		s.asleep.lay(r, text)
	}
	return nil
}
