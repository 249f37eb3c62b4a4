package format

// Outweighed reports whether the dead lines have more than limit bytes, and more than
// half of the file. It is a guess, to be cheap: lines that remove something may
// have to stay.
func (t *Text) Outweighed(limit int) bool {
	x, err := t.indexed()
	return err == nil && x.dead > limit && x.dead > len(t.data)/2
}

// Without is the file with a base at the head: the lines that are kept, and only the
// count of those that are left out.
func (t *Text) Without(kept, left []int) []byte {
	head, keptBytes := t.Head(), t.bytes(kept)
	h := t.Header
	h.Base = Base{
		Seq: head.Seq, Hash: head.Hash,
		Kept: len(kept), Sum: Sum(keptBytes),
		Left: t.Base.Left + len(left), Digest: Sum([]byte(t.Base.Digest), t.bytes(left)),
	}
	return append(h.encode(), keptBytes...)
}

// History is the history file with the lines that are left out. Its base counts
// and sums them.
func (t *Text) History(left []int) []byte {
	head, leftBytes := t.Head(), t.bytes(left)
	h := t.Header
	h.Base = Base{Seq: head.Seq, Hash: head.Hash, Kept: len(left), Sum: Sum(leftBytes)}
	return append(h.encode(), leftBytes...)
}

// Split returns which lines must stay: those with a live fact, and those that remove
// a key for which an earlier line that stays still has a value.
func (t *Text) Split() (kept, left []int, err error) {
	x, err := t.indexed()
	if err != nil {
		return nil, nil, err
	}
	removed := map[string]int{} // by key: the line that removed it for good
	for i := range t.lines {
		for key := range t.keys(i) {
			if _, alive := x.get(t.data, key); !alive {
				removed[key] = i
			}
		}
	}
	mentioned := map[string]bool{} // by lines that stay
	for i := range t.lines {
		stays := x.live[i] > 0
		for key := range t.keys(i) {
			last, gone := removed[key]
			stays = stays || gone && last == i && mentioned[key]
		}
		if !stays {
			left = append(left, i)
			continue
		}
		kept = append(kept, i)
		for key := range t.keys(i) {
			mentioned[key] = true
		}
	}
	return kept, left, nil
}

// keys yields the keys of line i, which has been indexed, without MembersKey.
func (t *Text) keys(i int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		f, _ := cutLine(t.Line(i))
		for rest := f.facts; len(rest) > 0; {
			key, _, more, ok := cutFact(rest)
			if rest = more; !ok || string(key) != MembersKey && !yield(string(key)) {
				return
			}
		}
	}
}

// bytes is those lines, as they are in the file.
func (t *Text) bytes(lines []int) []byte {
	out := make([]byte, 0, t.Size(lines))
	for _, i := range lines {
		out = append(out, t.data[t.lines[i].start:t.lines[i].end+1]...)
	}
	return out
}

// Size is the number of bytes of those lines.
func (t *Text) Size(lines []int) int {
	size := 0
	for _, i := range lines {
		size += t.size(i)
	}
	return size
}
