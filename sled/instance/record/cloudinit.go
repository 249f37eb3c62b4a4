package record

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sledctl/sledctl/propolis/spec"
)

// CloudInit is what a volume tells the guest when it first boots, where cloud-init reads it.
// User-data and a network configuration may hold passwords, so that in a record digests stand
// for them.
type CloudInit struct {
	Hostname      string   `json:"hostname,omitempty"` // empty: the name of the instance
	SSHKeys       []string `json:"ssh_keys,omitempty"` // as in authorized_keys(5)
	UserData      string   `json:"user_data,omitempty"`
	NetworkConfig string   `json:"network_config,omitempty"`
	// Volume is the digest of the volume, in base64, that follows from all of it.
	Volume string `json:"volume,omitempty"`
}

// What bounds it: with the rest of the VM it goes to Propolis in a request of at most 1 MiB.
const (
	MaxUserData      = 512 << 10 // bytes
	MaxNetworkConfig = 64 << 10  // bytes
	MaxSSHKeys       = 64
	maxSSHKey        = 8 << 10 // bytes
)

// empty reports whether the guest is told nothing.
func (c CloudInit) empty() bool {
	return c.Hostname == "" && len(c.SSHKeys) == 0 && c.UserData == "" && c.NetworkConfig == ""
}

// Same reports whether two say the same; nil says nothing.
func (c *CloudInit) Same(other *CloudInit) bool {
	if c == nil || other == nil {
		return c == other
	}
	return c.Hostname == other.Hostname && slices.Equal(c.SSHKeys, other.SSHKeys) && c.UserData == other.UserData &&
		c.NetworkConfig == other.NetworkConfig
}

// Text is it in a few words, without what is secret; "none" for nil.
func (c *CloudInit) Text() string {
	if c == nil {
		return "none"
	}
	var parts []string
	if c.Hostname != "" {
		parts = append(parts, "hostname "+c.Hostname)
	}
	if n := len(c.SSHKeys); n == 1 {
		parts = append(parts, "1 SSH key")
	} else if n > 1 {
		parts = append(parts, fmt.Sprintf("%d SSH keys", n))
	}
	if c.UserData != "" {
		parts = append(parts, "user-data")
	}
	if c.NetworkConfig != "" {
		parts = append(parts, "network-config")
	}
	return strings.Join(parts, ", ")
}

// OwnCloudInit reports whether the machine that was written down has a disk for cloud-init itself.
func (s Spec) OwnCloudInit() bool {
	if s.Machine == nil {
		return false
	}
	_, own := s.Machine.Components[spec.KeyCloudInit]
	return own
}

// digests are what in it stands for secrets.
func (c *CloudInit) digests() []string {
	if c == nil {
		return nil
	}
	all := []string{c.UserData, c.NetworkConfig, c.Volume}
	return slices.DeleteFunc(all, func(s string) bool { return !spec.IsSealed(s) })
}

// Sealed puts digests in the places of secrets, and adds the secrets by their digests to fresh.
func (c *CloudInit) Sealed(key []byte, fresh map[string]string) *CloudInit {
	if c == nil {
		return nil
	}
	closed := *c
	for _, text := range []*string{&closed.UserData, &closed.NetworkConfig, &closed.Volume} {
		*text = seal(key, *text, fresh)
	}
	return &closed
}

func seal(key []byte, text string, fresh map[string]string) string {
	if text == "" || spec.IsSealed(text) {
		return text
	}
	digest := spec.Digest(key, text)
	fresh[digest] = text
	return digest
}

// unseal puts secrets in the places of their digests.
func (c *CloudInit) unseal(secrets map[string]string) *CloudInit {
	if c == nil {
		return nil
	}
	open := *c
	for _, text := range []*string{&open.UserData, &open.NetworkConfig, &open.Volume} {
		if secret, kept := secrets[*text]; kept {
			*text = secret
		}
	}
	return &open
}

// Digests are those that stand for the secrets of a record: of its machine, and of what its guest
// is told.
func (r Record) Digests() []string {
	all := append(r.Spec.CloudInit.digests(), crucibleDigests(r.Spec.Crucible)...)
	if r.Spec.Machine != nil {
		all = append(all, r.Spec.Machine.Sealed()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Unseal puts secrets in the places of their digests. A digest without a secret stays as it is.
func (r Record) Unseal(secrets map[string]string) Record {
	if r.Spec.Machine != nil {
		machine := r.Spec.Machine.Unseal(secrets)
		r.Spec.Machine = &machine
	}
	r.Spec.CloudInit = r.Spec.CloudInit.unseal(secrets)
	r.Spec.Crucible = unsealCrucible(r.Spec.Crucible, secrets)
	return r
}

// CloudInitParts are the parts of it that a command speaks of: what is nil stays as it is,
// what is empty is none.
type CloudInitParts struct {
	Hostname      *string
	SSHKeys       []string
	UserData      *string
	NetworkConfig *string
}

// CloudInitFiles are files from which parts are to be read; empty: none is.
type CloudInitFiles struct{ UserData, NetworkConfig string }

// Any reports whether it speaks of any.
func (p CloudInitParts) Any() bool {
	return p.Hostname != nil || p.SSHKeys != nil || p.UserData != nil || p.NetworkConfig != nil
}

// Over returns p with what it leaves open taken from below.
func (p CloudInitParts) Over(below CloudInitParts) CloudInitParts {
	p.Hostname = cmp.Or(p.Hostname, below.Hostname)
	p.UserData = cmp.Or(p.UserData, below.UserData)
	p.NetworkConfig = cmp.Or(p.NetworkConfig, below.NetworkConfig)
	if p.SSHKeys == nil {
		p.SSHKeys = below.SSHKeys
	}
	return p
}

// Whole returns p with what it leaves open as none.
func (p CloudInitParts) Whole() CloudInitParts {
	none := ""
	return p.Over(CloudInitParts{Hostname: &none, SSHKeys: []string{}, UserData: &none, NetworkConfig: &none})
}

// Apply puts the parts over those that there are. The volume stays.
func (p CloudInitParts) Apply(had *CloudInit) *CloudInit {
	if !p.Any() {
		return had
	}
	var next CloudInit
	if had != nil {
		next = *had
	}
	for to, from := range map[*string]*string{&next.Hostname: p.Hostname, &next.UserData: p.UserData, &next.NetworkConfig: p.NetworkConfig} {
		if from != nil {
			*to = *from
		}
	}
	if p.SSHKeys != nil {
		next.SSHKeys = p.SSHKeys
	}
	if next.empty() {
		return nil
	}
	return &next
}

// Seal puts digests in the places of secrets, and adds the secrets by their digests to fresh.
func (p CloudInitParts) Seal(key []byte, fresh map[string]string) CloudInitParts {
	for _, text := range []**string{&p.UserData, &p.NetworkConfig} {
		if *text != nil {
			digest := seal(key, **text, fresh)
			*text = &digest
		}
	}
	return p
}

// Validate checks what is bounded by itself.
func (p CloudInitParts) Validate() error {
	if p.Hostname != nil && *p.Hostname != "" {
		if err := validateHostname(*p.Hostname); err != nil {
			return err
		}
	}
	if len(p.SSHKeys) > MaxSSHKeys {
		return &InputError{Field: "ssh-key", Value: fmt.Sprintf("%d keys", len(p.SSHKeys)), Want: fmt.Sprintf("at most %d keys", MaxSSHKeys)}
	}
	for _, key := range p.SSHKeys {
		if err := ValidateSSHKey(key); err != nil {
			return err
		}
	}
	if err := validateText("cloud-init", p.UserData, MaxUserData); err != nil {
		return err
	}
	return validateText("network-config", p.NetworkConfig, MaxNetworkConfig)
}

// validateText refuses a text without quoting it.
func validateText(field string, text *string, most int) error {
	switch {
	case text == nil:
	case len(*text) > most:
		return &InputError{
			Field: field, Value: fmt.Sprintf("%d bytes", len(*text)),
			Want: fmt.Sprintf("at most %d bytes; user-data can fetch more (#include URL)", most),
		}
	case !utf8.ValidString(*text) || strings.ContainsRune(*text, 0):
		return &InputError{Field: field, Value: "bytes that are no text", Want: "text in UTF-8, not compressed"}
	}
	return nil
}

// validateHostname wants a name as DNS has it (RFC 1123, section 2.1).
func validateHostname(name string) error {
	bad := &InputError{
		Field: "hostname", Value: name,
		Want: "at most 253 of a-z, A-Z, 0-9, - and ., each part 1 to 63 of them, beginning and ending with a letter or digit",
	}
	if len(name) > 253 {
		return bad
	}
	for part := range strings.SplitSeq(name, ".") {
		if len(part) < 1 || len(part) > 63 || strings.Trim(part, "-") != part || strings.ContainsFunc(part, func(r rune) bool {
			return r != '-' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
		}) {
			return bad
		}
	}
	return nil
}

// IsSSHKey reports whether a text is meant to be a public key, not the name of a file.
func IsSSHKey(text string) bool {
	kind, _, more := strings.Cut(text, " ")
	return more && (strings.HasPrefix(kind, "ssh-") || strings.HasPrefix(kind, "ecdsa-") || strings.HasPrefix(kind, "sk-"))
}

// ValidateSSHKey wants one line of authorized_keys(5) without options: a kind, and in base64 a
// key that says the same kind (RFC 4253, section 6.6).
func ValidateSSHKey(text string) error {
	fields := strings.Fields(text)
	bad := &InputError{Field: "ssh-key", Value: text, Want: "a public key, e.g. ssh-ed25519 AAAA... alice, or a file with such lines"}
	switch {
	case strings.Contains(text, "PRIVATE KEY"):
		return &InputError{Field: "ssh-key", Value: "a private key", Want: "the public one, in the file that ends in .pub"}
	case len(text) > maxSSHKey || !IsSSHKey(text) || len(fields) < 2 || strings.ContainsFunc(text, unicode.IsControl):
		return bad
	}
	blob, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil || len(blob) < 4 {
		return bad
	}
	if n := binary.BigEndian.Uint32(blob); uint64(n) > uint64(len(blob)-4) || string(blob[4:4+n]) != fields[0] {
		return bad
	}
	return nil
}

// SSHKeys reads the keys of a file: its lines, but for empty ones and comments.
func SSHKeys(text string) ([]string, error) {
	keys := []string{}
	if strings.Contains(text, "PRIVATE KEY") {
		return nil, ValidateSSHKey(text)
	}
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := ValidateSSHKey(line); err != nil {
			return nil, err
		}
		keys = append(keys, line)
	}
	if len(keys) == 0 {
		return nil, &InputError{Field: "ssh-key", Value: "a file without keys", Want: "a line for each public key"}
	}
	return keys, nil
}
