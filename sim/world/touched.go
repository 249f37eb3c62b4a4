package world

// Touched is what a transaction may have changed of those parts of a State of which
// a sled has many. A store looks at these entries, and at those that are new or
// gone, when the transaction ends, and at no others. A nil *Touched notes nothing.
type Touched struct {
	zones     map[*Zone]bool
	links     map[*Link]bool
	processes map[*Process]bool
	datasets  map[string]bool // by full name: also one that was made, renamed or destroyed
	stacks    map[string]bool // by zone; also one that was made or dropped
	services  map[string]bool // by zone; the same
	around    bool            // NAPI or Nexus
}

func newTouched() *Touched {
	return &Touched{
		zones: map[*Zone]bool{}, links: map[*Link]bool{}, processes: map[*Process]bool{},
		datasets: map[string]bool{}, stacks: map[string]bool{}, services: map[string]bool{},
	}
}

// notes says whether a transaction's store wants to know what it touches.
func (tx *Tx) notes() bool { return tx.Write && tx.touched != nil }

// TouchZone notes that a zone is about to be changed. FindZone does so itself, and
// a zone that is new or gone needs no note.
func (tx *Tx) TouchZone(z *Zone) {
	if tx.notes() {
		tx.touched.zones[z] = true
	}
}

// TouchLink notes that a link is about to be changed. One that is new or gone needs no note.
func (tx *Tx) TouchLink(l *Link) {
	if tx.notes() {
		tx.touched.links[l] = true
	}
}

// TouchProcess notes that a process is about to be changed. One that is new or gone
// needs no note.
func (tx *Tx) TouchProcess(p *Process) {
	if tx.notes() {
		tx.touched.processes[p] = true
	}
}

// TouchDataset notes that what State.Datasets has under a name is about to be made,
// changed or removed.
func (tx *Tx) TouchDataset(name string) {
	if tx.notes() {
		tx.touched.datasets[name] = true
	}
}

// TouchStack notes that the IP stack of a zone is about to be made, changed or removed.
func (tx *Tx) TouchStack(zone string) {
	if tx.notes() {
		tx.touched.stacks[zone] = true
	}
}

// TouchServices notes that the SMF of a zone is about to be made, changed or removed.
func (tx *Tx) TouchServices(zone string) {
	if tx.notes() {
		tx.touched.services[zone] = true
	}
}

// TouchAround notes that NAPI or Nexus is about to be changed.
func (tx *Tx) TouchAround() {
	if tx.notes() {
		tx.touched.around = true
	}
}
