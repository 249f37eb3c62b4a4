package smf

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// These steps write into the root of a zone from outside, through a view that
// cannot leave it: a guest may have planted links. Root is ZONEPATH/root, and
// names are the zone's own, absolute.

// WriteProfile writes a zone's site profile. It counts at the zone's next boot
// and only once (see SiteProfile), so it is written before the first.
type WriteProfile struct {
	Root    string
	Profile Profile
}

// WriteManifest writes a manifest, and makes the directories above it. A zone
// imports those below /var/svc/manifest when it boots.
type WriteManifest struct {
	Root, Name string
	Content    []byte
}

// WriteMethod writes the program that a manifest names as a method, and makes
// the directories above it.
type WriteMethod struct {
	Root, Name string
	Content    []byte
}

// Verb names the step.
func (WriteProfile) Verb() string { return "smf.write-profile" }

// Verb names the step.
func (WriteManifest) Verb() string { return "smf.write-manifest" }

// Verb names the step.
func (WriteMethod) Verb() string { return "smf.write-method" }

// Undo is nothing: the file goes with the zone.
func (WriteProfile) Undo() any { return nil }

// Undo is nothing: the file goes with the zone.
func (WriteManifest) Undo() any { return nil }

// Undo is nothing: the file goes with the zone.
func (WriteMethod) Undo() any { return nil }

// Explain is the file.
func (s WriteProfile) Explain() []host.Line {
	return []host.Line{host.FileLine(path.Join(s.Root, SiteProfile), RenderProfile(s.Profile))}
}

// Explain is the directory and the file.
func (s WriteManifest) Explain() []host.Line { return explainFile(s.Root, s.Name, s.Content) }

// Explain is the directory and the file.
func (s WriteMethod) Explain() []host.Line { return explainFile(s.Root, s.Name, s.Content) }

func explainFile(root, name string, content []byte) []host.Line {
	name = path.Join(root, name)
	return []host.Line{host.MkdirLine(path.Dir(name), 0o755), host.FileLine(name, content)}
}

// Do writes the profile. It does not wait for the disk: a snapshot that keeps the zone for the
// sled's next boot has it, as all that was written before (zfs-snapshot(8)), and without one
// the zone does not outlive a power cut. Errors: *ProfileError before anything is written;
// those of the files, of fs.ErrNotExist for a missing root.
func (s WriteProfile) Do(_ context.Context, h host.Host) error {
	if err := s.Profile.Validate(); err != nil {
		return err
	}
	root, err := h.Files().In(s.Root)
	if err != nil {
		return fmt.Errorf("write the site profile: %w", err)
	}
	return host.ReplaceFile(root, SiteProfile, RenderProfile(s.Profile), 0o644)
}

// Do writes the manifest.
func (s WriteManifest) Do(_ context.Context, h host.Host) error {
	return writeFile(h, s.Root, s.Name, s.Content, 0o444)
}

// Do writes the method.
func (s WriteMethod) Do(_ context.Context, h host.Host) error {
	return writeFile(h, s.Root, s.Name, s.Content, 0o555)
}

func writeFile(h host.Host, root, name string, content []byte, mode fs.FileMode) error {
	in, err := h.Files().In(root)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := host.MkdirAll(in, path.Dir(name), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return host.WriteFile(in, name, content, mode)
}

// LogDir is where the logs of services lie (svc.startd(8)).
const LogDir = "/var/svc/log"

// LogFile is where svc.startd keeps what the methods of an instance say, and
// what they start does (svc.startd(8)).
func LogFile(fmri string) string {
	name := strings.TrimPrefix(fmri, "svc:/")
	return LogDir + "/" + strings.ReplaceAll(name, "/", "-") + ".log"
}
