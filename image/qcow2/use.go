package qcow2

// use is what each cluster of the file is used for: no two tables may share one, and
// no data may lie where a table does. Only compressed clusters share what they lie in.
//
// A file in which each byte serves once cannot loop, and yields no more than it holds.
type use struct {
	bits     uint
	length   int64 // of the file
	taken    bitmap
	packed   bitmap // holds compressed clusters
	clusters int64
}

type bitmap []uint64

func (b bitmap) has(n int64) bool { return b[n>>6]&(1<<(n&63)) != 0 }
func (b bitmap) set(n int64)      { b[n>>6] |= 1 << (n & 63) }

func newUse(h header, length int64) (*use, error) {
	clusters := (length + h.cluster() - 1) >> h.clusterBits
	if clusters > maxClusters {
		return nil, bad("the file has %d clusters; at most %d are read", clusters, maxClusters)
	}
	words := (clusters + 63) / 64
	return &use{bits: h.clusterBits, length: length, taken: make(bitmap, words), packed: make(bitmap, words), clusters: clusters}, nil
}

// claim takes a stretch of the file for one use, of which least bytes must be in the file. It is
// checked to begin with a cluster before.
func (u *use) claim(at, length, least int64, what string) error {
	if at < 0 || at >= u.length || at+least > u.length || at+least < 0 {
		return bad("%s is said to lie at %#x, past the end of the file of %d bytes", what, at, u.length)
	}
	for n := at >> u.bits; n <= min((at+length-1)>>u.bits, u.clusters-1); n++ {
		if u.taken.has(n) || u.packed.has(n) {
			return bad("%s is said to lie at %#x, where something else lies", what, at)
		}
		u.taken.set(n)
	}
	return nil
}

// pack notes that a compressed cluster lies in a stretch of the file.
func (u *use) pack(at, length int64, what string) error {
	if at >= u.length {
		return bad("%s is said to lie at %#x, past the end of the file of %d bytes", what, at, u.length)
	}
	for n := at >> u.bits; n <= min((at+length-1)>>u.bits, u.clusters-1); n++ {
		if u.taken.has(n) {
			return bad("%s is said to lie at %#x, where something else lies", what, at)
		}
		u.packed.set(n)
	}
	return nil
}
