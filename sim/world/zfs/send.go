package zfs

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// Streams of volumes: zfs_send, zfs_send_resume and zfs_receive_one in
// usr/src/lib/libzfs/common/libzfs_sendrecv.c, dmu_send.c and dmu_recv.c in usr/src/uts/common/fs/zfs. A
// stream begins with what it is of, then come parts of the volume in their order, and an end; the bytes of a
// real one are others, and nobody looks into them.

// streamMagic begins each.
const streamMagic = "simulated zfs stream 1\n"

// streamHead is what drr_begin has, and of a volume its size.
type streamHead struct {
	Snapshot string `json:"snapshot"`
	To       uint64 `json:"to"`
	From     uint64 `json:"from,omitempty"`
	Volsize  string `json:"volsize"`
	Block    string `json:"volblocksize"`
	Resume   bool   `json:"resume,omitempty"` // it continues one that was interrupted
}

// streamPart is how much of a volume a record holds.
const streamPart = 64 << 10

// The kinds of records: DRR_WRITE, DRR_FREE, DRR_END.
const (
	recordWrite = 'w'
	recordFree  = 'f'
	recordEnd   = 'e'
)

// recordHead is kind, offset, length and the checksum of what follows.
const recordHead = 1 + 8 + 8 + 4

func appendRecord(to []byte, kind byte, offset uint64, length int, data []byte) []byte {
	to = append(to, kind)
	to = binary.BigEndian.AppendUint64(to, offset)
	to = binary.BigEndian.AppendUint64(to, uint64(length))
	to = binary.BigEndian.AppendUint32(to, crc32.ChecksumIEEE(data))
	return append(to, data...)
}

// guidOf is the guid of a dataset as ZFS has it: one that was received has the sender's.
func guidOf(d *world.Dataset) uint64 {
	if d.Sent != 0 {
		return d.Sent
	}
	return d.GUID
}

// token is what a resume token says.
type token struct {
	Snapshot string `json:"toname"`
	To       uint64 `json:"toguid"`
	From     uint64 `json:"fromguid,omitempty"`
	Offset   uint64 `json:"offset"`
	Bytes    uint64 `json:"bytes"`
}

// tokenOf is that of a volume that was received in part: version, checksum, length and text, in
// hexadecimal (get_receive_resume_stats_impl of dsl_dataset.c).
func tokenOf(d *world.Dataset) string {
	if d.Partial == nil {
		return ""
	}
	p := d.Partial
	text, err := json.Marshal(token{p.Snapshot, p.To, p.From, p.Offset, p.Bytes})
	if err != nil {
		return ""
	}
	return fmt.Sprintf("1-%x-%x-%s", crc32.ChecksumIEEE(text), len(text), hex.EncodeToString(text))
}

// parseToken is the inverse (zfs_send_resume_token_to_nvlist).
func parseToken(text string) (t token, err error) {
	parts := strings.Split(text, "-")
	corrupt := refuse("cannot resume send: resume token is corrupt")
	corrupt.Exit = 255
	if len(parts) != 4 || parts[0] != "1" {
		return t, corrupt
	}
	packed, err := hex.DecodeString(parts[3])
	if err != nil || fmt.Sprintf("%x-%x", crc32.ChecksumIEEE(packed), len(packed)) != parts[1]+"-"+parts[2] || json.Unmarshal(packed, &t) != nil {
		return t, corrupt
	}
	return t, nil
}

// Send is the stream of a snapshot: of all of it, or of what has changed since an earlier one of the same
// volume, whose name may leave out what is before the @.
func Send(tx *world.Tx, snapshot, since string) ([]byte, error) {
	s, err := OpenDataset(tx, snapshot, TypeSnapshot)
	if err != nil {
		return nil, err
	}
	c := &checker{tx: tx, action: "warning: cannot send '" + snapshot + "'"}
	var from *world.Dataset
	if since != "" {
		if strings.HasPrefix(since, "@") {
			since = parentName(snapshot) + since
		}
		if from, err = OpenDataset(tx, since, TypeSnapshot); err != nil {
			return nil, err
		}
		if parentName(since) != parentName(snapshot) || from.Created >= s.Created {
			return nil, c.refuse("not an earlier snapshot from the same fs")
		}
	}
	return c.send(s, from, 0, false)
}

// SendResume is the rest of a stream that was received in part.
func SendResume(tx *world.Tx, text string) ([]byte, error) {
	t, err := parseToken(text)
	if err != nil {
		return nil, err
	}
	gone := func(format string, args ...any) error {
		r := refuse("cannot resume send: "+format, args...)
		r.Exit = 255 // zfs_do_send returns -1
		return r
	}
	snapshots := Snapshots(tx, parentName(t.Snapshot))
	of := func(guid uint64) int {
		return slices.IndexFunc(snapshots, func(d *world.Dataset) bool { return guidOf(d) == guid })
	}
	to := of(t.To)
	switch {
	case to < 0 && FindDataset(tx, t.Snapshot) != nil:
		return nil, gone("'%s' is no longer the same snapshot used in the initial send", t.Snapshot)
	case to < 0:
		return nil, gone("'%s' used in the initial send no longer exists", t.Snapshot)
	}
	var from *world.Dataset
	if t.From != 0 {
		i := of(t.From)
		if i < 0 {
			return nil, gone("incremental source %#x no longer exists", t.From)
		}
		from = snapshots[i]
	}
	c := &checker{tx: tx, action: "warning: cannot send '" + snapshots[to].Name + "'"}
	return c.send(snapshots[to], from, t.Offset, true)
}

func (c *checker) send(s, from *world.Dataset, offset uint64, resume bool) ([]byte, error) {
	head := FindDataset(c.tx, parentName(s.Name))
	switch {
	case Kind(head) != TypeVolume:
		return nil, world.NotSimulated("zfs send of a file system")
	case locked(c.tx, head):
		return nil, c.refuse("dataset key must be loaded")
	}
	if err := c.writable(s.Name); err != nil {
		return nil, err
	}
	h := streamHead{Snapshot: s.Name, To: guidOf(s), Volsize: s.Volsize, Block: fmt.Sprint(blockBytes(head)), Resume: resume}
	var old *volumeBytesOf
	if from != nil {
		h.From = guidOf(from)
		old = readVolume(c.tx, from)
		defer old.close()
	}
	now := readVolume(c.tx, s)
	defer now.close()
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	out := append([]byte(streamMagic), append(text, '\n')...)
	part, was := make([]byte, streamPart), make([]byte, streamPart)
	zeros := make([]byte, streamPart)
	for at := int64(offset); at < max(now.size, old.length()); at += streamPart {
		if err := errors.Join(now.read(part, at), old.read(was, at)); err != nil {
			return nil, err
		}
		switch {
		case bytes.Equal(part, was):
		case bytes.Equal(part, zeros):
			out = appendRecord(out, recordFree, uint64(at), streamPart, nil)
		default:
			out = appendRecord(out, recordWrite, uint64(at), streamPart, part)
		}
	}
	return appendRecord(out, recordEnd, 0, 0, nil), nil
}

// volumeBytesOf reads what a volume or a snapshot of one holds.
type volumeBytesOf struct {
	file io.ReaderAt
	end  func() error
	size int64 // behind it are zeros only
	err  error
}

// readVolume opens it; nil, which nobody has, reads as zeros.
func readVolume(tx *world.Tx, d *world.Dataset) *volumeBytesOf {
	name := path.Join(d.Tree, volumeFile)
	if d.Tree == "" || !tx.Exists(name) {
		return &volumeBytesOf{}
	}
	info, err := tx.Files.Stat(name)
	if err != nil {
		return &volumeBytesOf{err: err}
	}
	file, err := tx.Files.Open(name, os.O_RDONLY, 0)
	if err != nil {
		return &volumeBytesOf{err: err}
	}
	return &volumeBytesOf{file: file, end: file.Close, size: info.Size}
}

func (v *volumeBytesOf) length() int64 {
	if v == nil {
		return 0
	}
	return v.size
}

// read fills all of p: with zeros behind the end.
func (v *volumeBytesOf) read(p []byte, at int64) error {
	clear(p)
	if v == nil || v.file == nil {
		if v != nil {
			return v.err
		}
		return nil
	}
	if _, err := v.file.ReadAt(p, at); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func (v *volumeBytesOf) close() {
	if v != nil && v.end != nil {
		_ = v.end() // it was only read
	}
}

// sameBytes compares a volume with a snapshot.
func sameBytes(tx *world.Tx, a, b *world.Dataset) (bool, error) {
	one, other := readVolume(tx, a), readVolume(tx, b)
	defer one.close()
	defer other.close()
	p, q := make([]byte, 1<<20), make([]byte, 1<<20)
	for at := int64(0); at < max(one.size, other.size); at += int64(len(p)) {
		if err := errors.Join(one.read(p, at), other.read(q, at)); err != nil {
			return false, err
		}
		if !bytes.Equal(p, q) {
			return false, nil
		}
	}
	return true, nil
}

// dropPartial removes what a volume has of a stream.
func dropPartial(tx *world.Tx, d *world.Dataset) error {
	name := path.Join(d.Tree, partialFile)
	if d.Tree == "" || !tx.Exists(name) {
		return nil
	}
	return tx.Files.Remove(name)
}
