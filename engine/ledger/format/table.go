package format

import "bytes"

// table finds places by their keys, which stay in the text. It holds no pointer, so
// that a hundred thousand facts are a few pieces of memory, into which the garbage
// collector need not look.
type table struct {
	slots  []slot  // by hash; at least half of them are free
	places []place // in the order in which their keys came
}

// slot is where a key is looked for.
type slot struct {
	hash uint32
	n    uint32 // 1 + the index of its place; 0: the slot is free
}

// place is where a value lies in the text: no bytes of it, so that those of a text
// that was too short for the next line are not kept. No length means removed.
type place struct {
	start             int
	length, key, line int32 // key is the length of the key, which stands before the value
}

// name is the key in data, the bytes of the text.
func (p place) name(data []byte) []byte {
	end := p.start - len(openValue)
	return data[end-int(p.key) : end]
}

// at is the slot of a key, or the free one that it would get. There are slots.
func (t *table) at(data []byte, hash uint32, key []byte) *slot {
	mask := len(t.slots) - 1
	for i := int(hash) & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.n == 0 || s.hash == hash && bytes.Equal(t.places[s.n-1].name(data), key) {
			return s
		}
	}
}

// find is the place of a key, or nil.
func (t *table) find(data []byte, hash uint32, key []byte) *place {
	if len(t.slots) == 0 {
		return nil
	}
	if s := t.at(data, hash, key); s.n > 0 {
		return &t.places[s.n-1]
	}
	return nil
}

// put enters a place, or puts it in the place of the one that its key has.
func (t *table) put(data []byte, hash uint32, p place) {
	if 2*(len(t.places)+1) > len(t.slots) {
		t.grow()
	}
	s := t.at(data, hash, p.name(data))
	if s.n > 0 {
		t.places[s.n-1] = p
		return
	}
	t.places = append(t.places, p)
	*s = slot{hash, uint32(len(t.places))}
}

// grow doubles the slots, whose number is a power of two.
func (t *table) grow() {
	before := t.slots
	t.slots = make([]slot, max(16, 2*len(before)))
	t.places = append(make([]place, 0, len(t.slots)/2), t.places...)
	mask := len(t.slots) - 1
	for _, s := range before {
		if s.n == 0 {
			continue
		}
		i := int(s.hash) & mask
		for t.slots[i].n > 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = s
	}
}
