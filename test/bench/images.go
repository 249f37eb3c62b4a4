package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// images measures the import of a qcow2 next to qemu-img, which converts it to a raw file, and a
// copy of a VM with a large disk.
func (b bench) images(ctx context.Context) ([]row, error) {
	imports, err := b.imports(ctx)
	if err != nil {
		return nil, err
	}
	copies, err := b.copies(ctx)
	return append(imports, copies...), err
}

// imports measures the import of a disk that is half full, in turn with qemu-img, which flushes what it has written, too.
// What sledctl does besides is to sum up the file, and to look at all of its tables before it writes. That the simulated ZFS
// copies a volume for a snapshot of it is not counted.
func (b bench) imports(ctx context.Context) ([]row, error) {
	const n, size = 3, int64(2) << 30
	const most = 1.3
	qemu, err := exec.LookPath("qemu-img")
	if err != nil {
		return []row{told("image import of 2 GiB next to qemu-img", "not available: no qemu-img in PATH")}, nil
	}
	sled := filepath.Join(b.dir, "images")
	s, err := inDirectory(ctx, sled)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	raw, packed, out := filepath.Join(b.dir, "disk.raw"), filepath.Join(b.dir, "disk.qcow2"), filepath.Join(b.dir, "converted.raw")
	if err := halfFull(raw, size); err != nil {
		return nil, err
	}
	defer func() { _ = errors.Join(os.Remove(packed), os.Remove(out), os.RemoveAll(sled)) }() // 6 GiB that others need
	convert := func(to, from, into string) error {
		said, err := exec.CommandContext(ctx, qemu, "convert", "-t", "writeback", "-O", to, from, into).CombinedOutput()
		if err != nil {
			return fmt.Errorf("qemu-img convert: %w: %s", err, said)
		}
		return nil
	}
	if err := errors.Join(convert("qcow2", raw, packed), os.Remove(raw)); err != nil {
		return nil, err
	}
	var our, their times
	for range n {
		start := time.Now()
		if err := convert("raw", packed, out); err != nil {
			return nil, err
		}
		their = append(their, time.Since(start))
		r, err := s.run(ctx, nil, "image", "import", packed, "--name", "disk")
		if err != nil {
			return nil, err
		}
		our = append(our, r.own())
		if _, err := s.run(ctx, nil, "image", "delete", "disk"); err != nil {
			return nil, err
		}
	}
	ratio := float64(our.median()) / float64(their.median())
	return []row{{
		What: "image import of a qcow2 of 2 GiB, half full", Budget: fmt.Sprintf("≤ %.1f times qemu-img convert", most),
		Measured: fmt.Sprintf("%.2f times its time (%s / %s, n=%d)", ratio, millis(our.median()), millis(their.median()), n),
		Judged:   true, Over: ratio > most,
	}}, nil
}

// halfFull writes a disk of which every other MiB is not zero.
func halfFull(name string, size int64) error {
	const part = 1 << 20
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	defer out.Close()
	random := rand.NewChaCha8([32]byte{})
	data := make([]byte, part)
	for at := int64(0); at < size; at += 2 * part {
		if _, err := random.Read(data); err != nil {
			return err
		}
		if _, err := out.WriteAt(data, at); err != nil {
			return err
		}
	}
	return errors.Join(out.Truncate(size), out.Close())
}

// copies measures a copy of a VM that is stopped and has a disk of 100 GiB, with all that the sled does for it.
func (b bench) copies(ctx context.Context) ([]row, error) {
	const n = 7
	s, err := inDirectory(ctx, filepath.Join(b.dir, "copies"))
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for _, args := range [][]string{{"instance", "ensure", "web1", "--disk", "size=100G"}, {"instance", "stop", "web1"}} {
		if _, err := s.run(ctx, nil, args...); err != nil {
			return nil, err
		}
	}
	var all times
	for i := range n {
		r, err := s.run(ctx, nil, "instance", "copy", "web1", fmt.Sprint("copy", i))
		if err != nil {
			return nil, err
		}
		all = append(all, r.wall)
	}
	return []row{timed("instance copy, a disk of 100 GiB, no latencies: own time and the sled's", time.Second, all.median(), fmt.Sprintf("(n=%d)", n))}, nil
}
