package world

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"

	"github.com/google/uuid"
)

// Draw gives the next number of a sequence that only the state's seed, the
// purpose and the number of draws so far decide: two sleds with one seed that
// live through the same commands are equal, and a draw for one purpose does
// not shift those for another.
func (tx *Tx) Draw(purpose string) uint64 {
	sum := tx.draw(purpose)
	return binary.BigEndian.Uint64(sum[:])
}

// UUID draws a random (version 4) UUID.
func (tx *Tx) UUID() string {
	sum := tx.draw("uuid")
	id := uuid.UUID(sum[:16])
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

func (tx *Tx) draw(purpose string) [sha256.Size]byte {
	in := binary.BigEndian.AppendUint64(nil, tx.State.Seed)
	in = strconv.AppendUint(in, tx.Count("draw "+purpose), 10)
	in = append(in, ' ')
	return sha256.Sum256(append(in, purpose...))
}

// Count raises the named counter and returns it: 1 the first time.
func (tx *Tx) Count(name string) uint64 {
	if tx.State.Counters == nil {
		tx.State.Counters = map[string]uint64{}
	}
	tx.State.Counters[name]++
	return tx.State.Counters[name]
}
