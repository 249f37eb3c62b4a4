package packaging

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// Baseline is the service that makes what a zone of an image begins with, at each boot, and
// BaselinePackage the package that brings it (oxidecomputer/helios-omicron-brand, pkg).
const (
	Baseline        = "svc:/system/omicron/baseline:default"
	BaselinePackage = "system/zones/brand/omicron1/tools"
)

// FindBaseline is the directory of the baseline; empty: there is none, and no zone can be
// installed from an image.
func FindBaseline(files host.Files) (string, error) {
	for _, dir := range []string{"/var/run/brand/" + Brand + "/baseline", omicron1 + "/baseline"} {
		switch _, err := files.Stat(path.Join(dir, "gzonly.txt")); {
		case err == nil:
			return dir, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("look for the baseline of zones: %w", err)
		}
	}
	return "", nil
}

// Sum is the SHA-256 of an image, and the one that it should have.
type Sum struct {
	Image, SHA256 string
	// Expected is what the file From says; empty: no file says it.
	Expected, From string
}

// Sums are those of the images that are there.
func (s Settings) Sums(ctx context.Context, files host.Files) ([]Sum, error) {
	var all []Sum
	for _, image := range s.Images {
		sum, err := sumOf(ctx, files, image)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read image %s: %w", image, err)
		}
		one := Sum{Image: image, SHA256: sum}
		if one.Expected, one.From, err = expected(files, image); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// expected reads the sum that was downloaded with an image.
//
// Guess sum-next-to-image: the sum of `NAME.tar.gz` is the first word of `NAME.sha256.txt`, as
// Oxide's builds call it, or of `NAME.tar.gz.sha256`.
// Check: the artifacts of a build of propolis, and `digest -a sha256 propolis-server.tar.gz`
func expected(files host.Files, image string) (sum, from string, err error) {
	for _, name := range []string{strings.TrimSuffix(image, ".tar.gz") + ".sha256.txt", image + ".sha256"} {
		data, err := host.ReadAtMost(files, name, 4096)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", "", fmt.Errorf("read the sum of an image: %w", err)
		}
		word, _, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
		return strings.ToLower(word), name, nil
	}
	return "", "", nil
}

func sumOf(ctx context.Context, files host.Files, name string) (string, error) {
	f, err := files.Open(name, os.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	sum := sha256.New()
	for part := int64(1 << 20); ; {
		n, err := io.CopyN(sum, f, part)
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(sum.Sum(nil)), nil
		}
		if err == nil && n == part {
			err = ctx.Err()
		}
		if err != nil {
			return "", err
		}
	}
}
