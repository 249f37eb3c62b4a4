package matrix

import (
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/sim/simtest/contract"
	"github.com/sledctl/sledctl/test/lattice"
	"github.com/sledctl/sledctl/test/sledtest"
)

// The sleds of the matrix are those of the lattice. Its rows are dealt out to the
// verbs, as many to each as its cases can be shared out over.

// dealtRow is a verb with the sleds that it is disturbed on.
type dealtRow struct {
	row
	sleds []row
}

// hands is how many sleds each verb is dealt.
func hands() int {
	switch {
	case sledtest.Soak():
		return 13 // each mode has its own
	case testing.Short():
		return 1
	}
	return 3
}

// dealt deals the rows of the lattice out to the verbs: to each those that fit it
// and were dealt least.
func dealt() (all []dealtRow) {
	table := lattice.Sleds()
	sleds := table.Cover(sledtest.Strength())
	for i := range sleds {
		sleds[i] = sleds[i].Spareless() // what takes them and makes them has verbs of its own
	}
	used := make([]int, len(sleds))
	for _, r := range rows() {
		d := dealtRow{row: r}
		if !r.anywhere() {
			d.sleds = []row{r}
			all = append(all, d)
			continue
		}
		order := r.shuffled(len(sleds))
		slices.SortStableFunc(order, func(a, b int) int { return used[a] - used[b] })
		for _, n := range order {
			if len(d.sleds) == hands() {
				break
			}
			if (r.fits == nil || r.fits(sleds[n])) && (!r.makesVolumes() || holdsVolumes(sleds[n])) {
				used[n]++
				d.sleds = append(d.sleds, r.at(sleds[n]))
			}
		}
		all = append(all, d)
	}
	return all
}

// makesVolumes says whether the verb, or what comes before it, makes a volume.
func (r row) makesVolumes() bool {
	lines := strings.Join(append(r.ready, r.line), "\n")
	return strings.Contains(lines, "volume create") || strings.Contains(lines, "size=") || strings.Contains(lines, "instance import")
}

// anywhere says whether the verb does not say itself what its sled is.
func (r row) anywhere() bool {
	return r.config == "" && r.mode == "" && r.m2 == 0 && r.u2 == 0 && r.early == nil && !r.pair
}

// shuffled is an order that is the verb's own.
func (r row) shuffled(n int) []int {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(r.name))
	first := int(hash.Sum32() % uint32(n))
	order := make([]int, n)
	for i := range order {
		order[i] = (first + i*7) % n
	}
	slices.Sort(order[:0])
	seen := map[int]bool{}
	order = slices.DeleteFunc(order, func(i int) bool { was := seen[i]; seen[i] = true; return was })
	for i := range n {
		if !seen[i] {
			order = append(order, i)
		}
	}
	return order
}

// at is the verb on a sled of the lattice.
func (r row) at(sled lattice.Row) row {
	if sled.Memory() {
		sled = sled.Enlarged() // what cannot be made cannot be disturbed
	}
	r.on = &sled
	words := strings.NewReplacer(sledtest.Web1, "instance ensure web1"+machineOf(sled), sledtest.Web1NICs, nicsOf(sled), "instance delete web1", "instance delete --yes web1")
	r.line = words.Replace(r.line)
	r.ready, r.ends = slices.Clone(r.ready), slices.Clone(r.ends)
	for i, line := range r.ready {
		r.ready[i] = words.Replace(line)
	}
	for i, line := range r.ends {
		r.ends[i] = words.Replace(line)
	}
	if r.ends == nil {
		r.ends = []string{"instance delete --yes web1"}
	}
	return r
}

func nicsOf(sled lattice.Row) (words string) {
	for n := range sled.NICs() {
		words += " " + sled.NIC("web1", n)
	}
	return words
}

// machineOf are the flags of a machine of the row.
func machineOf(sled lattice.Row) string {
	extras, _ := sled.Extras("web1", sled.PoolName())
	return nicsOf(sled) + " " + sled.Size() + " " + extras + sled.Flags()
}

func fromImages(r lattice.Row) bool { return r.Is(lattice.Mode) != lattice.OmniOS }

func unprotected(r lattice.Row) bool { return r.Is(lattice.Protected) == lattice.No }

// oneBase says whether there is one base zone on the sled.
func oneBase(r lattice.Row) bool { return !fromImages(r) && r.Is(lattice.Disks) == lattice.OneM2 }

// holdsVolumes says whether there is a pool for them: the only one for zones may lie in memory.
func holdsVolumes(r lattice.Row) bool {
	return r.Is(lattice.Mode) != lattice.RAMDisk || r.Is(lattice.Disks) != lattice.LoneM2
}

// unimaged says whether there is no image before: image prune would remove it.
func unimaged(r lattice.Row) bool { return r.Is(lattice.VMDisks) != lattice.Cloned }

// roomy says whether downloads have a place, too.
func roomy(r lattice.Row) bool { return withDisks(r) && unimaged(r) }

// withDisks says whether there are disks next to the one that was booted from.
func withDisks(r lattice.Row) bool { return r.Is(lattice.Disks) != lattice.RpoolOnly }

// mindful says whether the ledger is at hand after a boot, before bootstrap.
func mindful(r lattice.Row) bool { return r.Is(lattice.Mode) != lattice.RAMDisk }

// adoptable says whether the machines of the row can be adopted by one command; volumes are adopted by another.
func adoptable(r lattice.Row) bool {
	return !r.Has(lattice.VMDisks, lattice.Crucible, lattice.Made, lattice.Cloned, lattice.Remote)
}

// ledgered says whether an export of the ledger has all of the machines of the row; it has none of volumes.
func ledgered(r lattice.Row) bool { return !r.Has(lattice.VMDisks, lattice.Made, lattice.Cloned) }

// layout makes the sled of a verb.
func (r row) layout(t *testing.T) *sledtest.Operator {
	inner, err := lattice.Lay(t.Context(), *r.on)
	if err != nil {
		t.Fatalf("%v: %v", r.on, err)
	}
	s := &sledtest.Operator{Sled: inner, T: t, Laid: r.on}
	contract.Watch(t, inner)
	t.Cleanup(s.Close)
	return s
}

// atWork has an agent at work where the sled has one.
func (s *scene) atWork() {
	if s.Laid == nil || s.Laid.Is(lattice.Agent) != lattice.Running || s.Ledger() == nil {
		return
	}
	s.Lobby = &sledtest.Lobby{}
	s.agents = s.StartAgent(s.T.(*testing.T), s.Host())
}

// off has the agent end, as before a reboot.
func (s *scene) off() {
	if s.agents != nil {
		s.agents.Stop()
		s.agents = nil
	}
}

// reboot is a power cycle, and what comes up then by itself, or is made again by
// others.
func (s *scene) reboot() {
	s.T.Helper()
	s.off()
	err := s.Reboot(s.T.Context())
	if err == nil && s.Laid != nil {
		err = s.Laid.Booted(s.T.Context(), s.Sled)
		if s.Laid.Is(lattice.Mode) == lattice.RAMDisk {
			foreigners(s.Operator, "ipkg")
		}
	}
	if err != nil {
		s.T.Fatal(err)
	}
	s.settle()
}

// settle waits until what others have is up.
func (s *scene) settle() {
	if s.Laid != nil && s.Laid.Is(lattice.Latencies) != lattice.None {
		time.Sleep(2 * time.Minute)
	}
}
