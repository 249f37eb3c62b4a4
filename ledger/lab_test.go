package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/sledctl/sledctl/host"
)

// lab is a state of a sled between two things that happen to it, and what must
// be true of it from then on. It is copied before anything happens, so all that
// can happen next can be tried.
type lab struct {
	belief
	sled    *sled
	without rule
	repairs bool // writers make missing files anew

	// What must be true if the process that acts now is killed: before it has
	// appended a line anywhere, and after.
	ifNot, ifUnknown belief
}

// belief is what is known of a state.
type belief struct {
	laws
	next       int      // number of the next append
	changes    int      // of the members, completed or not
	unfinished int      // of these, those of which nobody knows
	stray      []string // disks that are blank, or copies of others: no healthy sled has them
}

// changing is the belief while the members are being changed.
func (b belief) changing() belief {
	b.changes++
	b.unfinished++
	return b
}

// newLab is a fresh sled with a ledger.
func newLab(c config) (*lab, error) {
	l := &lab{sled: newSled(panics{}, c.disks, c.plain), without: c.without, repairs: c.repairs}
	l.next = 1
	l.laws.facts = func(n int) []Fact { return []Fact{fact("k", strconv.Quote(opName(n)))} }
	l.sled.witness.forgets = c.blind
	on := l.sled.places().Locations[:len(l.sled.disks)-c.spares]
	err := CreateOn(context.Background(), l.sled, l.sled.places(), Creation{Who: "lab", On: on})
	return l, err
}

// config is what a lab begins with.
type config struct {
	disks   int
	plain   bool // and a plain directory
	spares  int  // disks, the last ones, that have no copy yet
	blind   bool // there is no witness
	without rule
	repairs bool
}

// panics is a test for helpers that need one where none is at hand.
type panics struct{}

func (panics) Helper()           {}
func (panics) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func (l *lab) clone() *lab {
	c := *l
	c.sled = l.sled.clone()
	return &c
}

func (s *sled) clone() *sled {
	c := &sled{ram: s.ram.Clone(), witness: &memoryWitness{mark: s.witness.mark, forgets: s.witness.forgets}}
	for _, d := range s.disks {
		c.disks = append(c.disks, &disk{at: d.at, mount: d.mount, files: d.files.Clone(), mounted: d.mounted, device: d.device, budget: -1})
	}
	return c
}

// process is a ledger as a new process opens it. Nothing is held over from
// those before it.
func (l *lab) process() *Ledger {
	p, err := unopened(l.sled, l.sled.places())
	if err != nil {
		panic(err)
	}
	p.without = l.without // and rewrites nothing by itself: that is a step of its own
	return p
}

// key tells states apart that can go on differently, and no others: ids, hashes
// and appends are called by the order in which they are met, times are left
// out.
func (l *lab) key() [sha256.Size]byte {
	var b bytes.Buffer
	for _, d := range l.sled.disks {
		fmt.Fprintf(&b, "disk %s %v\n", d.at.Pool, d.mounted)
		if d.told == nil {
			d.told = d.files.Describe()
		}
		b.Write(d.told)
	}
	b.Write(l.sled.ram.Describe())
	if m := l.sled.witness.mark; m != nil {
		fmt.Fprintln(&b, m)
	}
	for _, ops := range [][]int{l.shown, l.maybe, l.present(b.Bytes())} {
		for _, n := range ops {
			b.WriteString(opName(n) + " ")
		}
		b.WriteByte('\n')
	}
	fmt.Fprintln(&b, l.head.Seq, l.head.Hash, l.stray, min(l.changes, 2), min(l.unfinished, 1))
	return sha256.Sum256(canonical(b.Bytes()))
}

// present is the refused appends that are on some disk: others cannot appear.
func (l *lab) present(on []byte) []int {
	return slices.DeleteFunc(slices.Clone(l.refused), func(n int) bool { return !bytes.Contains(on, []byte(opName(n))) })
}

// canonical renames what is random.
func canonical(text []byte) []byte {
	out := make([]byte, 0, len(text))
	names := map[string]int{}
	rename := func(name []byte, kind byte) {
		n, ok := names[string(name)]
		if !ok {
			n = len(names)
			names[string(name)] = n
		}
		out = append(strconv.AppendInt(append(out, kind), int64(n), 10), kind)
	}
	const time, aside = `"time":"`, "aside-"
	for i := 0; i < len(text); {
		rest := text[i:]
		n := 1
		switch c := rest[0]; {
		case c == '"' && bytes.HasPrefix(rest, []byte(time)):
			n = min(len(rest), len(time)+len(timeForm))
		case c == 'a' && bytes.HasPrefix(rest, []byte(aside)):
			n = min(len(rest), len(aside)+len("20060102T150405Z"))
		case c == 'o' && len(rest) >= 8 && rest[1] == 'p' && digits(rest[2:8]):
			n = 8
			rename(rest[:n], '~')
		case isHex(c):
			if n = hexRun(rest); n == 16 || n == hashLen {
				rename(rest[:n], '#')
			} else {
				out = append(out, rest[:n]...)
			}
		default:
			out = append(out, c)
		}
		i += n
	}
	return out
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' }

func digits(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c < '0' || c > '9' })
}

// hexRun is how many hexadecimal digits the text opens with.
func hexRun(text []byte) int {
	n := 0
	for n < len(text) && isHex(text[n]) {
		n++
	}
	return n
}

// seq is the highest number of a line that any disk holds.
func (l *lab) seq() uint64 {
	var highest uint64
	for _, d := range l.sled.disks {
		data, err := host.ReadFile(d.files, strings.TrimPrefix(d.at.File(), d.mount))
		if err != nil {
			continue
		}
		for rest := data; ; {
			_, after, ok := bytes.Cut(rest, []byte(openSeq))
			if !ok {
				break
			}
			n, _ := strconv.ParseUint(string(after[:bytes.IndexByte(append(after, ','), ',')]), 10, 64)
			highest, rest = max(highest, n), after
		}
	}
	return highest
}

// asides is how many files were set aside on a disk. Each join that was killed
// may leave one, so there must be an end.
func (l *lab) asides(d *disk) int {
	infos, _ := d.files.ReadDir(strings.TrimPrefix(d.at.Directory, d.mount))
	n := 0
	for _, info := range infos {
		if strings.HasPrefix(info.Name, "aside-") {
			n++
		}
	}
	return n
}

// away says whether a disk is not mounted.
func (l *lab) away() bool {
	return slices.ContainsFunc(l.sled.disks, func(d *disk) bool { return !d.mounted })
}

// refusal judges an error: it must be of a known kind and say what would be
// right; and a sled whose disks are all there is never refused, unless two
// changes of its members have crossed, one of which was not finished.
func (l *lab) refusal(err error) error {
	if err == nil {
		return nil
	}
	kinds := []error{ErrAbsent, ErrMissing, ErrForked, ErrTwins, ErrOverruled, ErrExists, ErrNotMounted}
	if !slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) {
		return fmt.Errorf("unexplained: %w", err)
	}
	if !errors.Is(err, ErrExists) && !errors.Is(err, ErrNotMounted) && hint(err) == "" {
		return fmt.Errorf("nobody says what would be right: %w", err)
	}
	crossed := l.changes >= 2 && l.unfinished >= 1
	if !l.away() && len(l.stray) == 0 && !crossed && !errors.Is(err, ErrExists) {
		return fmt.Errorf("healthy disks are refused: %w", err)
	}
	return nil
}

// strict says whether nothing can have made a member know less than was shown.
func (l *lab) strict() bool { return l.changes == 0 && len(l.stray) == 0 }

// read looks as a reader does.
func (l *lab) read() error {
	v, err := l.process().Read(context.Background())
	if err != nil {
		return l.refusal(err)
	}
	return l.see(v, l.strict())
}

// update appends something as a writer does, with a new process or one that
// has looked before.
func (l *lab) update(p *Ledger, degrade bool, meanwhile func() error) error {
	if l.repairs {
		l.repair(p)
	}
	if degrade {
		p.Degrade("lab", "alone")
	}
	n, before := l.next, l.maybe
	l.next++
	refused := slices.Concat(l.refused, []int{n})
	l.ifNot = l.belief
	l.ifNot.refused = refused
	l.ifUnknown = l.ifNot
	var law error
	decided, epoch := false, uint64(0)
	v, err := p.Update(context.Background(), func(v View) (facts []Fact, err error) {
		if law = l.see(v, l.strict()); law != nil {
			return nil, nil
		}
		if meanwhile != nil {
			law = meanwhile()
		}
		decided, epoch = true, v.Epoch().N
		l.ifNot = l.belief
		l.ifNot.refused = refused
		facts, err = l.decide(n, v)
		l.ifUnknown = l.belief
		if degrade {
			l.ifUnknown = l.belief.changing()
			l.ifUnknown.maybe = slices.Concat(before, l.maybe)
		}
		return facts, err
	})
	if law != nil {
		return law
	}
	if err == nil {
		if v.Epoch().N != epoch {
			l.changes++
		}
		if law := l.see(v, true); law != nil {
			return law
		}
		return l.acknowledged(n)
	}
	if degrade && decided {
		l.belief = l.belief.changing()
	}
	w, failed := errors.AsType[*WriteError](err)
	if failed {
		if _, after := p.Read(context.Background()); !errors.Is(after, ErrDead) {
			return fmt.Errorf("a process goes on after %v", w) // no %w: a disk that failed is not what is wrong
		}
	}
	if failed && w.Unknown {
		return nil
	}
	l.refused, l.maybe = refused, before
	return l.refusal(err)
}

// repair is what must never be done: where a member's file is not there, it is
// made from another copy.
func (l *lab) repair(p *Ledger) {
	look, err := p.look(context.Background())
	if err != nil {
		return
	}
	for _, m := range look.missing {
		at := OnPool(m.Pool)
		if p.ensureDirectory(at) == nil {
			_ = host.WriteFile(l.sled, at.File(), look.best.text.as(m.Copy), fileMode)
		}
	}
}

// late appends something with a process that looked before another one wrote.
func (l *lab) late() error {
	p := l.process()
	if _, err := p.Read(context.Background()); err != nil {
		return l.refusal(err)
	}
	if err := l.update(l.process(), false, nil); err != nil {
		return err
	}
	return l.update(p, false, nil)
}

// fail appends something while a disk fails in its nth change, and works again
// after it; half says that it takes half of that one.
func (l *lab) fail(d *disk, n int, half bool) error {
	fault := error(syscall.EIO)
	if half {
		fault = errHalf
	}
	d.budget, d.fault = n, func() error {
		d.working()
		return fault
	}
	err := l.update(l.process(), false, nil)
	l.sled.revive()
	if errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ENOSPC) {
		return nil // it says so
	}
	return err
}

// twin makes a disk a copy of another one, as dd(8) does.
func (l *lab) twin(d *disk) error {
	for _, other := range l.sled.disks {
		if other != d && other.mounted {
			d.files = other.files.Clone()
			d.flush()
			l.stray = slices.Concat(l.stray, []string{d.at.Pool})
			return nil
		}
	}
	return nil
}

// join takes a disk in. Whatever becomes of it, a file that was there is still
// there under some name.
func (l *lab) join(d *disk) error {
	look, err := l.process().look(context.Background())
	if err != nil {
		return l.refusal(err)
	}
	before, there := d.file(path.Base(d.at.File()))
	member := look.member(d.at) != nil
	p := l.process()
	p.Degrade("lab", "join")
	l.ifNot, l.ifUnknown = l.belief, l.belief.changing()
	err = p.Join(context.Background(), []Location{d.at}, "lab", "join")
	switch {
	case err == nil && !member:
		l.changes++
		l.stray = slices.DeleteFunc(slices.Clone(l.stray), func(name string) bool { return name == d.at.Pool })
	case errors.Is(err, ErrDead):
		l.belief = l.ifUnknown
	}
	if there && !member && !l.keeps(d, before) {
		return fmt.Errorf("a file of %s is gone", d.at.Directory)
	}
	return l.refusal(err)
}

// file is a file in the disk's directory, mounted or not.
func (d *disk) file(name string) ([]byte, bool) {
	data, err := host.ReadFile(d.files, path.Join(strings.TrimPrefix(d.at.Directory, d.mount), name))
	return data, err == nil
}

// keeps says whether some file in the disk's directory is that one.
func (l *lab) keeps(d *disk, data []byte) bool {
	infos, _ := d.files.ReadDir(strings.TrimPrefix(d.at.Directory, d.mount))
	return slices.ContainsFunc(infos, func(info host.Info) bool {
		now, _ := d.file(info.Name)
		return bytes.Equal(now, data)
	})
}

// tidy rewrites one copy, whatever the others are. No line is lost to history.
func (l *lab) tidy(d *disk) error {
	p := l.process()
	picture, err := p.look(context.Background())
	if err != nil {
		return l.refusal(err)
	}
	c := picture.member(d.at)
	if c == nil || !p.mayRewrite(picture) {
		return nil
	}
	before := l.history()
	l.ifNot, l.ifUnknown = l.belief, l.belief
	keep, leave, err := c.text.split(l.without)
	if err != nil || len(leave) == 0 {
		return err
	}
	if err := p.leaveOut(c, keep, leave); err != nil {
		return fmt.Errorf("rewrite: %w", err)
	}
	if now := l.history(); now < before {
		return fmt.Errorf("history had %d lines, now %d", before, now)
	}
	return nil
}

// history is how many lines can still be read.
func (l *lab) history() int {
	n := 0
	for _, err := range History(context.Background(), l.sled, l.sled.places()) {
		if err == nil {
			n++
		}
	}
	return n
}

// bargain is what it would cost to keep a copy, and the appends that it holds.
func (p *Ledger) bargain(d *disk) (loss Loss, kept []int, err error) {
	if loss, err = p.lose(context.Background(), d.at.File()); err != nil {
		return Loss{}, nil, err
	}
	facts, err := p.at(d.at).text.facts()
	if err != nil {
		return Loss{}, nil, err
	}
	kept, err = listed(View{index: facts})
	return loss, kept, err
}

// gone makes disks that a keep does not see disks that nobody brings back: what
// comes in their place is blank. It names their pools. To bring one back is to
// go on with what was given up, of which no copy that is there can know.
func (s *sled) gone(loss Loss) []string {
	var pools []string
	for _, d := range s.disks {
		seen := loss.Kept == d.at.File() || slices.ContainsFunc(loss.Others, func(g Given) bool { return g.File == d.at.File() })
		if _, there := d.file(path.Base(d.at.File())); there && !(seen && d.mounted) {
			d.format()
			pools = append(pools, d.at.Pool)
		}
	}
	return pools
}

// keep gives all copies up but one.
func (l *lab) keep(d *disk) error {
	ctx := context.Background()
	loss, kept, err := l.process().bargain(d)
	if errors.Is(err, ErrNoCopy) || errors.Is(err, ErrAbsent) {
		return nil
	}
	if err != nil {
		return err
	}
	l.stray = slices.Concat(l.stray, l.sled.gone(loss))
	l.ifNot, l.ifUnknown = l.belief, l.belief.changing()
	l.ifUnknown.waver(kept)
	if err := l.process().keep(ctx, loss, reason{"lab", "keep"}); err != nil {
		return fmt.Errorf("keep: %w", err)
	}
	l.changes++
	v, err := l.process().Read(ctx)
	if err != nil {
		return fmt.Errorf("after keep: %w", err)
	}
	if err := l.laws.keep(v); err != nil {
		return err
	}
	if _, err := l.process().Update(ctx, func(View) ([]Fact, error) { return nil, nil }); err != nil {
		return fmt.Errorf("after keep: %w", err)
	}
	l.unfinished = 0
	return nil
}

// leave gives one copy up, in good order.
func (l *lab) leave(d *disk) error {
	l.ifNot, l.ifUnknown = l.belief, l.belief.changing()
	err := l.process().Leave(context.Background(), d.at.Directory, "lab", "leave")
	switch {
	case err == nil:
		l.changes++
	case errors.Is(err, ErrDead):
		l.belief = l.ifUnknown
	case strings.Contains(err.Error(), "only copy"):
		return nil
	}
	return l.refusal(err)
}

// create must never make a second ledger.
func (l *lab) create() error {
	err := CreateOn(context.Background(), l.sled, l.sled.places(), Creation{Who: "lab", without: l.without})
	if err == nil {
		return fmt.Errorf("a second ledger was made")
	}
	return l.refusal(err)
}

// flush makes what is on a disk certain, as an unmount does.
func (d *disk) flush() { d.files.Settle() }

// others is a sled whose locks are not waited for.
type others struct{ *sled }

func (o others) Lock(ctx context.Context, name string, mode host.LockMode) (host.Lock, error) {
	try := host.TryExclusive
	if mode == host.LockShared {
		try = host.TryShared
	}
	return o.sled.Lock(ctx, name, try)
}

// meanwhile is another process that writes while this one decides: it must not
// get that far.
func (l *lab) meanwhile() error {
	p := l.process()
	p.files = others{l.sled}
	n := l.next
	l.next++
	value, err := json.Marshal(opName(n))
	if err != nil {
		return err
	}
	_, err = p.Update(context.Background(), func(View) ([]Fact, error) { return []Fact{{"other", value}}, nil })
	if err == nil {
		return fmt.Errorf("two processes write at once")
	}
	if !errors.Is(err, host.ErrLocked) {
		return fmt.Errorf("unexplained: %w", err)
	}
	return nil
}
