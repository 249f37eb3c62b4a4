package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/engine/ledger/format"
	"github.com/sledctl/sledctl/host"
)

// onDisk is a ledger of that many facts in two directories of the real file
// system, 700 bytes each, as an instance's record with its addresses has.
func onDisk(b *testing.B, facts int) (host.Files, Places) {
	b.Helper()
	files := host.Dir(b.TempDir())
	p := Places{Lock: "/run/ledger.lock", Locations: []Location{{Directory: "/a"}, {Directory: "/b"}}}
	try(b, Create(context.Background(), files, p, Creation{Who: "bench"}))
	l, _, err := Open(context.Background(), files, p)
	try(b, err)
	var lines [][]byte
	first := l.seen["/a"].text
	for n := 0; n < facts; n += 2 {
		id := fmt.Sprintf("%08d-aaaa-bbbb-cccc-%012d", n, n)
		record := fmt.Sprintf(`{"name":"web%d","state":"running","zone":"oxz_%s","nics":[{"mac":"02:08:20:00:00:01","over":"net0"},`+
			`{"mac":"02:08:20:00:00:02","over":"net1"}],"disks":[{"path":"/dev/zvol/rdsk/rpool/a","readonly":false}],"fill":"%s"}`,
			n, id, strings.Repeat("x", 1000))
		line := format.EncodeLine(first.Head(), 1, noon, []Fact{fact("instance/"+id, record), fact("address/fd00::"+fmt.Sprint(n), `"`+id+`"`)})
		first, err = first.Extend(line)
		try(b, err)
		lines = append(lines, line)
	}
	for _, at := range p.Locations {
		var all []byte
		for _, line := range lines {
			all = append(all, line...)
		}
		try(b, files.Append(at.File(), all))
		try(b, files.Sync(at.File()))
	}
	return files, p
}

// BenchmarkOpen is everything from nothing to a view of 10,000 facts: reading
// and verifying both copies, flushing them, and the index of keys. The budget
// is 20 ms.
func BenchmarkOpen(b *testing.B) {
	for _, facts := range []int{1000, 10000} {
		b.Run(fmt.Sprint(facts), func(b *testing.B) {
			files, p := onDisk(b, facts)
			info, err := files.Stat(p.Locations[0].File())
			try(b, err)
			for b.Loop() {
				l, _, err := Open(b.Context(), files, p)
				try(b, err)
				if v, err := l.Read(b.Context()); err != nil || v.Seq() != uint64(facts/2+1) {
					b.Fatal(v.Seq(), err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1e3/float64(b.N), "ms/open")
			b.ReportMetric(float64(info.Size)/1e6, "MB/copy")
		})
	}
}

// BenchmarkDecode is what the same file costs encoding/json alone.
func BenchmarkDecode(b *testing.B) {
	files, p := onDisk(b, 10000)
	data, err := host.ReadFile(files, path.Join(p.Locations[0].Directory, fileName))
	try(b, err)
	for b.Loop() {
		for line := range strings.Lines(string(data)) {
			var decoded struct {
				Facts []struct {
					Key   string
					Value json.RawMessage
				}
			}
			try(b, json.Unmarshal([]byte(line), &decoded))
		}
	}
}

// BenchmarkUpdate is one append to two copies that hold 10,000 facts, flushed.
func BenchmarkUpdate(b *testing.B) {
	files, p := onDisk(b, 10000)
	l, _, err := Open(b.Context(), files, p)
	try(b, err)
	n := 0
	for b.Loop() {
		n++
		set(b, l, fact("k", fmt.Sprint(n)))
	}
}

// BenchmarkReadUnchanged is what it costs to find nothing new.
func BenchmarkReadUnchanged(b *testing.B) {
	files, p := onDisk(b, 10000)
	l, _, err := Open(b.Context(), files, p)
	try(b, err)
	for b.Loop() {
		must(b)(l.Read(b.Context()))
	}
}
