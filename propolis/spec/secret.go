package spec

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// What of a machine is secret: the request for a Crucible volume, which holds the
// keys that the disk is encrypted with, and the contents of a disk that lie in
// the spec, which are cloud-init's data. Where a machine is written down, a keyed
// digest stands for each.

// sealedPrefix begins what stands for a secret. No request for a volume, which is
// JSON, and no base64 begins so.
const sealedPrefix = "secret:hmac-sha256:"

// IsSealed says whether a text stands for a secret.
func IsSealed(text string) bool {
	digest, ok := strings.CutPrefix(text, sealedPrefix)
	return ok && len(digest) == 2*sha256.Size && strings.Trim(digest, "0123456789abcdef") == ""
}

// secretOf is what of a component is secret; false: nothing is.
func secretOf(part Component) (text string, ok bool) {
	switch p := part.(type) {
	case CrucibleStorage:
		return p.Request, true
	case BlobStorage:
		return p.Base64, true
	}
	return "", false
}

// withSecret is the component with another text where its secret was.
func withSecret(part Component, text string) Component {
	switch p := part.(type) {
	case CrucibleStorage:
		p.Request = text
		return p
	case BlobStorage:
		p.Base64 = text
		return p
	}
	return part
}

// Seal puts a digest in the place of each secret, and gives the secrets by their
// digests. Without the key, a digest does not show whether a guess is right. A
// digest that stands for a secret stays.
func (s InstanceSpec) Seal(key []byte) (sealed InstanceSpec, secrets map[string]string) {
	secrets = map[string]string{}
	sealed = s.swap(func(text string) string {
		if IsSealed(text) {
			return text
		}
		digest := Digest(key, text)
		secrets[digest] = text
		return digest
	})
	return sealed, secrets
}

// Digest is what stands for a secret where it is written down.
func Digest(key []byte, secret string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(secret))
	return sealedPrefix + hex.EncodeToString(mac.Sum(nil))
}

// Unseal puts secrets in the places of their digests. A digest without a secret stays
// as it is.
func (s InstanceSpec) Unseal(secrets map[string]string) InstanceSpec {
	return s.swap(func(text string) string {
		if secret, ok := secrets[text]; ok {
			return secret
		}
		return text
	})
}

// Sealed lists what stands for secrets, sorted.
func (s InstanceSpec) Sealed() []string {
	digests := map[string]bool{}
	for _, part := range s.Components {
		if text, ok := secretOf(part); ok && IsSealed(text) {
			digests[text] = true
		}
	}
	return slices.Sorted(maps.Keys(digests))
}

// Open says whether a secret stands in the open.
func (s InstanceSpec) Open() bool {
	for _, part := range s.Components {
		if text, ok := secretOf(part); ok && !IsSealed(text) {
			return true
		}
	}
	return false
}

func (s InstanceSpec) swap(with func(string) string) InstanceSpec {
	s = s.Clone()
	for key, part := range s.Components {
		if text, ok := secretOf(part); ok {
			s.Components[key] = withSecret(part, with(text))
		}
	}
	return s
}

// sealedProblems are the places where a spec that somebody has written has what
// only stands for a secret: sledctl prints such, and cannot take it back.
func (s InstanceSpec) sealedProblems() []Problem {
	var p problems
	for _, key := range s.Components.Keys() {
		if text, ok := secretOf(s.Components[key]); ok && IsSealed(text) {
			field := "base64"
			if isA[CrucibleStorage](s.Components[key]) {
				field = "request_json"
			}
			p.add(bodyPath(key, field), "is the digest of a secret, as sledctl prints it: want the secret")
		}
	}
	return p
}

// Unseal is InstanceSpec.Unseal of all that a request has.
func (r EnsureRequest) Unseal(secrets map[string]string) EnsureRequest {
	if r.Init.Spec != nil {
		s := r.Init.Spec.Unseal(secrets)
		r.Init.Spec = &s
	}
	if m := r.Init.Migration; m != nil {
		target := *m
		target.Replace = maps.Clone(m.Replace)
		for key, part := range target.Replace {
			if text, ok := secretOf(part.Component); ok && secrets[text] != "" {
				target.Replace[key] = Replacement{withSecret(part.Component, secrets[text])}
			}
		}
		r.Init.Migration = &target
	}
	return r
}

// Mask hides the secrets that a text, JSON in which specs may be, has in the open.
// What stands there then stands for no secret.
func Mask(data []byte) []byte {
	if !Exposes(data) {
		return data
	}
	secret := regexp.MustCompile(`("(?:request_json|base64)":)"(?:[^"\\]|\\.)*"`)
	return secret.ReplaceAllFunc(data, func(found []byte) []byte {
		if !Exposes(found) {
			return found
		}
		key, _, _ := bytes.Cut(found, []byte(":"))
		return fmt.Appendf(nil, `%s:"%s%064d"`, key, sealedPrefix, 0)
	})
}

// Exposes says whether a text, JSON in which specs may be, has a secret in the open.
func Exposes(data []byte) bool {
	for _, field := range []string{`"request_json":"`, `"base64":"`} {
		for rest := data; ; {
			_, after, found := bytes.Cut(rest, []byte(field))
			if !found {
				break
			}
			if !bytes.HasPrefix(after, []byte(sealedPrefix)) {
				return true
			}
			rest = after
		}
	}
	return false
}
