package image

import (
	"bytes"
	"context"
	"fmt"
	"io"
)

// chunk is how much is read and yielded at once; granule is the least stretch of zeros
// that becomes a hole.
const (
	chunk   = 1 << 20
	granule = 16 << 10
)

// walkStream yields what a reader gives, up to a size that it must have; -1: whatever it has.
func walkStream(ctx context.Context, in io.Reader, size int64, yield func(at, length int64, data []byte) error) error {
	buffer := make([]byte, chunk)
	var at int64
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(in, buffer)
		if size >= 0 && at+int64(n) > size {
			return &Refused{Reason: fmt.Sprintf("its disk has more than %d bytes", size)}
		}
		if n > 0 {
			if err := yield(at, int64(n), buffer[:n]); err != nil {
				return err
			}
			at += int64(n)
		}
		switch {
		case err == nil:
		case err != io.EOF && err != io.ErrUnexpectedEOF:
			return err
		case size >= 0 && at < size:
			return &Refused{Reason: fmt.Sprintf("its disk ends at %d bytes instead of %d", at, size)}
		default:
			return nil
		}
	}
}

// sieve turns stretches of zeros into holes, and joins holes that follow each other.
type sieve struct {
	yield func(at, length int64, data []byte) error
	at    int64 // the end of what was taken
	hole  int64 // how much before it is a hole that has not been yielded
}

// zeros is what data is compared with.
var zeros [granule]byte

func (s *sieve) take(at, length int64, data []byte) error {
	if data == nil {
		s.at += length
		s.hole += length
		return nil
	}
	for len(data) > 0 {
		n, zero := stretch(data)
		if zero {
			s.at += int64(n)
			s.hole += int64(n)
			data = data[n:]
			continue
		}
		if err := s.flush(); err != nil {
			return err
		}
		if err := s.yield(s.at, int64(n), data[:n]); err != nil {
			return err
		}
		s.at += int64(n)
		data = data[n:]
	}
	return nil
}

func (s *sieve) flush() error {
	if s.hole == 0 {
		return nil
	}
	from, length := s.at-s.hole, s.hole
	s.hole = 0
	return s.yield(from, length, nil)
}

// stretch is the longest beginning of data that is zeros, or that has none of a granule.
func stretch(data []byte) (n int, zero bool) {
	for n < len(data) {
		part := data[n:min(n+granule, len(data))]
		is := bytes.Equal(part, zeros[:len(part)])
		if n > 0 && is != zero {
			break
		}
		zero = is
		n += len(part)
	}
	return n, zero
}
