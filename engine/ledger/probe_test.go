package ledger

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"testing"

	"github.com/sledctl/sledctl/engine/ledger/format"
	"github.com/sledctl/sledctl/host"
)

func TestAFileThatIsTooLongIsNotReadWhole(t *testing.T) {
	s := created(t, 1, false)
	l := s.open(t)
	set(t, l, fact("a", "1"))
	long := endless{Files: s, size: 3 << 30}
	again, err := unopened(long, s.places())
	try(t, err)
	p, err := again.look(t.Context())
	try(t, err)
	if x := p.best.text; x.End != format.EndDamaged || x.Head().Seq != 2 || x.Rest < 3<<30-1000 {
		t.Errorf("end %d, at %v, %d bytes behind it", x.End, x.Head(), x.Rest)
	}
}

// endless shows the ledger with zeros behind it.
type endless struct {
	host.Files
	size int64
}

func (e endless) Open(name string, flag int, perm fs.FileMode) (host.File, error) {
	in, err := e.Files.Open(name, flag, perm)
	if err != nil || path.Base(name) != fileName {
		return in, err
	}
	return endlessFile{in, e.size}, nil
}

type endlessFile struct {
	host.File
	size int64
}

func (e endlessFile) Stat() (host.Info, error) {
	info, err := e.File.Stat()
	info.Size = e.size
	return info, err
}

func (e endlessFile) ReadAt(p []byte, at int64) (int, error) {
	if len(p) > maxFile {
		return 0, errors.New("that much is not to be read")
	}
	clear(p)
	_, err := e.File.ReadAt(p, at)
	if err == io.EOF {
		err = nil
	}
	return len(p), err
}
