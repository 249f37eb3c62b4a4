package zfs

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
)

// partialFile is where the records of a stream lie that did not end, next to the bytes of their volume.
const partialFile = ".received"

// ReceiveOptions are those of zfs receive.
type ReceiveOptions struct {
	Keep  bool              // -s: what has arrived of a stream that does not end
	Props map[string]string // -o
}

// receiving is one stream on its way into a volume.
type receiving struct {
	*checker
	head    streamHead
	target  string // the volume
	short   string // of the snapshot
	options ReceiveOptions
	records []byte // whole ones
	parts   []streamRecord
	ended   bool
}

type streamRecord struct {
	kind   byte
	offset uint64
	length uint64
	data   []byte
}

// Receive makes a snapshot of a volume, and the volume with it if the stream is of all of it.
func Receive(tx *world.Tx, target string, stream []byte, o ReceiveOptions) error {
	r := &receiving{checker: &checker{tx: tx, action: "cannot receive"}, options: o}
	if !r.parse(stream) {
		return r.refuse("failed to read from stream")
	}
	r.target, r.short, _ = strings.Cut(target, "@")
	if _, sent, _ := strings.Cut(r.head.Snapshot, "@"); r.short == "" {
		r.short = sent
	}
	r.action = "cannot receive new filesystem stream"
	switch {
	case r.head.Resume:
		r.action = "cannot receive resume stream"
	case r.head.From != 0:
		r.action = "cannot receive incremental stream"
	}
	d, err := r.destination()
	if err != nil {
		return err
	}
	if d == nil {
		if d, err = r.create(); err != nil {
			return err
		}
	}
	tx.TouchDataset(d.Name)
	if err := r.collect(d); err != nil {
		return err
	}
	if !r.ended {
		return r.broken(d)
	}
	return r.finish(d)
}

// parse reads the head, and as many records as are whole; false: there is no head.
func (r *receiving) parse(stream []byte) bool {
	rest, ok := bytes.CutPrefix(stream, []byte(streamMagic))
	text, rest, whole := bytes.Cut(rest, []byte("\n"))
	if !ok || !whole || json.Unmarshal(text, &r.head) != nil {
		return false
	}
	r.take(rest)
	return true
}

// take reads records until one is torn.
func (r *receiving) take(rest []byte) {
	for len(rest) >= recordHead && !r.ended {
		s := streamRecord{kind: rest[0], offset: binary.BigEndian.Uint64(rest[1:]), length: binary.BigEndian.Uint64(rest[9:])}
		size := 0
		if s.kind == recordWrite {
			size = int(min(s.length, streamPart))
		}
		if len(rest) < recordHead+size {
			return
		}
		s.data = rest[recordHead : recordHead+size]
		if crc32.ChecksumIEEE(s.data) != binary.BigEndian.Uint32(rest[17:]) {
			return
		}
		r.ended = s.kind == recordEnd
		if !r.ended {
			r.records, r.parts = append(r.records, rest[:recordHead+size]...), append(r.parts, s)
		}
		rest = rest[recordHead+size:]
	}
}

// destination is the volume that receives; nil: it is made.
func (r *receiving) destination() (*world.Dataset, error) {
	d := FindDataset(r.tx, r.target)
	if d != nil && Kind(d) != TypeVolume {
		return nil, world.NotSimulated("zfs receive into a file system")
	}
	if d != nil {
		if err := r.writable(d.Name); err != nil {
			return nil, err
		}
	}
	partial := d != nil && d.Partial != nil
	switch {
	case r.head.Resume && !partial:
		return nil, world.NotSimulated("zfs receive: a stream that continues nothing")
	case r.head.Resume && (d.Partial.To != r.head.To || d.Partial.From != r.head.From):
		return nil, world.NotSimulated("zfs receive: a stream that continues another one")
	case r.head.Resume:
		return d, nil
	case partial:
		return nil, r.refuse("destination %s contains partially-complete state from \"zfs receive -s\".", r.target)
	case r.head.From == 0 && d != nil:
		return nil, r.refuse("destination '%s' exists\nmust specify -F to overwrite it", r.target)
	case r.head.From == 0:
		return nil, nil
	case d == nil:
		return nil, r.refuse("destination '%s' does not exist", r.target)
	case len(r.options.Props) > 0:
		return nil, world.NotSimulated("zfs receive -o of what was received before")
	case locked(r.tx, d):
		return nil, r.refuse("inherited key must be loaded")
	}
	return d, r.continues(d)
}

// continues refuses a volume that is not as the stream of what has changed supposes.
func (r *receiving) continues(d *world.Dataset) error {
	own := Snapshots(r.tx, d.Name)
	if len(own) == 0 || guidOf(own[len(own)-1]) != r.head.From {
		return r.refuse("most recent snapshot of %s does not\nmatch incremental source", r.target)
	}
	same, err := sameBytes(r.tx, d, own[len(own)-1])
	if err == nil && !same {
		err = r.refuse("destination %s has been modified\nsince most recent snapshot", r.target)
	}
	return err
}

// create makes the volume of a stream of all of it. Where its parent is encrypted it is, too.
func (r *receiving) create() (*world.Dataset, error) {
	if parent := FindDataset(r.tx, parentName(r.target)); parent != nil && locked(r.tx, parent) {
		return nil, r.refuse("inherited key must be loaded")
	}
	props := map[string]string{"volsize": r.head.Volsize, "volblocksize": r.head.Block}
	for name, value := range r.options.Props {
		props[name] = value
	}
	if err := createAs(r.tx, r.action, r.target, TypeVolume, props, KeyOptions{}); err != nil {
		return nil, err
	}
	d := FindDataset(r.tx, r.target)
	d.Partial = &world.Partial{New: true}
	return d, nil
}

// collect puts what an interrupted one has received before what has arrived now.
func (r *receiving) collect(d *world.Dataset) error {
	if r.head.Resume {
		old, err := host.ReadFile(r.tx.Files, path.Join(d.Tree, partialFile))
		if err != nil {
			return err
		}
		now, ended := r.records, r.ended
		r.records, r.parts, r.ended = nil, nil, false
		r.take(append(old, now...))
		r.ended = ended
	}
	fresh := d.Partial == nil
	if fresh {
		d.Partial = &world.Partial{}
	}
	p := d.Partial
	p.Snapshot, p.To, p.From, p.Volsize, p.Bytes = r.head.Snapshot, r.head.To, r.head.From, r.head.Volsize, uint64(len(r.records))
	for _, s := range r.parts {
		p.Offset = s.offset + s.length
	}
	if p.Bytes > NewSurvey(r.tx).free(d)+d.Used {
		return errors.Join(r.abandon(d), r.refuse("out of space"))
	}
	return nil
}

// broken keeps what has arrived of a stream that did not end, or forgets it.
func (r *receiving) broken(d *world.Dataset) error {
	if !r.options.Keep {
		return errors.Join(r.abandon(d), r.refuse("checksum mismatch or incomplete stream"))
	}
	err := ensureTree(r.tx, d)
	if err == nil {
		err = world.Put(r.tx.Files, path.Join(d.Tree, partialFile), r.records, 0o600)
	}
	if err == nil && d.Partial.New {
		err = removeDevices(r.tx, d)
	}
	if err != nil {
		return err
	}
	return r.refuse("checksum mismatch or incomplete stream.\nPartially received snapshot is saved.\n"+
		"A resuming stream can be generated on the sending system by running:\n    zfs send -t %s", tokenOf(d))
}

// abandon takes back what a stream has made.
func (r *receiving) abandon(d *world.Dataset) error {
	if d.Partial.New {
		return remove(r.tx, d)
	}
	return AbortReceive(r.tx, d.Name)
}

// AbortReceive is zfs receive -A.
func AbortReceive(tx *world.Tx, name string) error {
	d, err := OpenDataset(tx, name, typeHeads)
	if err != nil {
		return err
	}
	if d.Partial == nil {
		return refuse("'%s' does not have any resumable receive state to abort", name)
	}
	if d.Partial.New {
		return remove(tx, d)
	}
	tx.TouchDataset(d.Name)
	d.Partial = nil
	return dropPartial(tx, d)
}

// finish writes what has arrived, and takes the snapshot.
func (r *receiving) finish(d *world.Dataset) error {
	resumed := d.Partial.New && r.head.Resume
	d.Partial = nil
	d.Local["volsize"] = r.head.Volsize
	err := dropPartial(r.tx, d)
	if err == nil && len(r.parts) > 0 {
		err = r.write(d)
	}
	if err != nil {
		return err
	}
	if resumed {
		err = addDevices(r.tx, d)
	}
	s := addDataset(r.tx, &world.Dataset{Name: r.target + "@" + r.short, Type: "snapshot", Volsize: r.head.Volsize, Sent: r.head.To})
	return errors.Join(err, copyContents(r.tx, d, s))
}

func (r *receiving) write(d *world.Dataset) error {
	name, _, err := OpenVolume(r.tx, d.Name, true)
	if err != nil {
		return err
	}
	file, err := r.tx.Files.Open(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	size, _ := strconv.ParseUint(r.head.Volsize, 10, 64)
	for _, s := range r.parts {
		data := s.data
		if s.kind == recordFree {
			data = make([]byte, streamPart)
		}
		if s.offset >= size {
			continue
		}
		data = data[:min(uint64(len(data)), size-s.offset)]
		if _, err = file.WriteAt(data, int64(s.offset)); err != nil {
			break
		}
		if s.kind == recordWrite {
			d.Used = min(d.Used+uint64(len(data)), volumeBytes+size)
		}
	}
	return errors.Join(err, file.Close())
}
