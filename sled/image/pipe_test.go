package image

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
)

// A pipe in which nothing arrives is given up when the command is interrupted.
func TestAPipeThatIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		in, end := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			_, err := io.ReadAll(&arriving{ctx: ctx, in: in})
			ended <- err
		}()
		_, _ = end.Write([]byte("a part"))
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		end.Close()
	})
}

// What arrives in pieces is what was sent, and its digest is that of all of it.
func TestAPipeInPieces(t *testing.T) {
	disk := bytes.Repeat([]byte("a disk. "), 64<<10)
	s, err := Pipe(t.Context(), io.MultiReader(bytes.NewReader(disk[:700]), bytes.NewReader(disk[700:])), int64(len(disk)), "")
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	err = s.disk.Walk(t.Context(), func(_, _ int64, data []byte) error { got = append(got, data...); return nil })
	if err = errors.Join(err, s.pipe.check()); err != nil || !bytes.Equal(got, disk) || s.pipe.sum() != opened(t, disk) {
		t.Errorf("%d bytes of %d, %v", len(got), len(disk), err)
	}
}

// opened is the digest of a file.
func opened(t *testing.T, disk []byte) string {
	t.Helper()
	s, err := Open(t.Context(), "disk.raw", bytes.NewReader(disk), int64(len(disk)), "")
	if err != nil {
		t.Fatal(err)
	}
	is, err := s.sum.wait()
	if err != nil {
		t.Fatal(err)
	}
	return is
}
