package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// lab is a state of a sled between two things that happen to it, and what must
// be true of it from then on. It is copied before anything happens, so all that
// can happen next can be tried.
type lab struct {
	belief
	sled   *sled
	unseen bool
	kept   bool

	// What must be true if the process that acts now is killed: before it has
	// appended a line anywhere, and after.
	ifNot, ifUnknown belief
}

// belief is what is known of a state.
type belief struct {
	laws
	next       int      // number of the next append
	changes    int      // of the members, completed or not
	unfinished int      // of these, those that no process knows
	strays     []string // disks that are blank, or copies of others: no healthy sled has them
}

// strayed notes that a disk is not what it was.
func (b *belief) strayed(d *disk) {
	b.stray, b.strays = true, slices.Concat(b.strays, []string{d.at.Pool})
}

// changing is the belief while the members are being changed.
func (b belief) changing() belief {
	b.changes++
	b.unfinished++
	return b
}

// newLab is a fresh sled with a ledger.
func newLab(c config) (*lab, error) {
	l := &lab{sled: newSled(panics{}, c.disks, c.plain), unseen: c.unseen, kept: c.kept}
	l.next = 1
	l.laws.facts = func(n int) []Fact { return []Fact{fact("k", strconv.Quote(opName(n)))} }
	l.sled.witness.forgets = c.blind
	on := l.sled.places().Locations[:len(l.sled.disks)-c.spares]
	err := Create(context.Background(), l.sled, l.sled.places(), Creation{Who: "lab", On: on})
	return l, err
}

// config is what a lab begins with.
type config struct {
	disks  int
	plain  bool // and a plain directory
	spares int  // disks, the last ones, that have no copy yet
	blind  bool // there is no witness
	unseen bool // each step is in a boot of its own: what one has seen does not help the next
	kept   bool // the index of the copies is, as if they were large
}

// panics is a test for helpers that need one where none is at hand.
type panics struct{}

func (panics) Helper() {}

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
// those before it. It rewrites nothing by itself: that is a step of its own.
func (l *lab) process() *Ledger {
	p, err := unopened(l.sled, l.sled.places())
	if err != nil {
		panic(err)
	}
	if l.kept {
		p.worth = 1
	}
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
	fmt.Fprintln(&b, l.head.Seq, l.head.Hash, l.strays, min(l.changes, 2), min(l.unfinished, 1))
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
	const time, aside = `"time":"`, "superseded-"
	for i := 0; i < len(text); {
		rest := text[i:]
		n := 1
		switch c := rest[0]; {
		case c == '"' && bytes.HasPrefix(rest, []byte(time)):
			n = min(len(rest), len(time)+len("2006-01-02T15:04:05.000000Z"))
		case c == 's' && bytes.HasPrefix(rest, []byte(aside)) && rest[len(aside)] != 's':
			n = min(len(rest), len(aside)+len("20060102T150405Z"))
		case c == 'o' && len(rest) >= 8 && rest[1] == 'p' && digits(rest[2:8]):
			n = 8
			rename(rest[:n], '~')
		case isHex(c):
			if n = hexRun(rest); n == 16 || n == 32 {
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
			_, after, ok := bytes.Cut(rest, []byte(`","seq":`))
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
		if strings.HasPrefix(info.Name, "superseded-") {
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
	kinds := []error{ErrAbsent, ErrMissing, ErrForked, ErrTwins, ErrSuperseded, ErrRewound, ErrExists, ErrNotMounted}
	if !slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) {
		return fmt.Errorf("unexplained: %w", err)
	}
	if !errors.Is(err, ErrExists) && !errors.Is(err, ErrNotMounted) && hint(err) == "" {
		return fmt.Errorf("nobody says what would be right: %w", err)
	}
	crossed := l.changes >= 2 && l.unfinished >= 1
	if !l.away() && len(l.strays) == 0 && !crossed && !errors.Is(err, ErrExists) {
		return fmt.Errorf("healthy disks are refused: %w", err)
	}
	return nil
}

// strict says whether nothing can have made a member know less than was shown.
func (l *lab) strict() bool { return l.changes == 0 && len(l.strays) == 0 }
