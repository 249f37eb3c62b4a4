package secrets

import (
	"maps"
	"slices"

	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance/firstboot"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// WithVolume is a record with the digest of the volume from which its guest is to read what it is
// told; the volume is added to what is fresh. As long as nothing that goes into it changes, it
// stays as it is, also where a later sledctl would build another. Errors: *record.InputError,
// *cidata.TooLargeError.
func WithVolume(old, next record.Record, had Vault, fresh map[string]string) (record.Record, error) {
	if next.Spec.CloudInit == nil {
		return next, nil
	}
	if _, kept := had.Held[next.Spec.CloudInit.Volume]; kept && sameGuest(old, next) {
		return next, nil
	}
	all := maps.Clone(had.Held)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, fresh)
	open := next.Unseal(all)
	lost, err := stillSealed(old, open)
	if err != nil || lost {
		return next, err
	}
	volume, err := firstboot.Volume(open)
	if err != nil {
		return next, err
	}
	told := *next.Spec.CloudInit
	told.Volume = spec.Digest(had.Key, volume)
	next.Spec.CloudInit = &told
	fresh[told.Volume] = volume
	return next, nil
}

// sameGuest reports whether all that makes a volume is the same.
func sameGuest(old, next record.Record) bool {
	return old.ID == next.ID && old.Name == next.Name && old.Spec.CloudInit.Same(next.Spec.CloudInit) &&
		slices.EqualFunc(old.Spec.NICs, next.Spec.NICs, func(a, b record.NIC) bool {
			return a.MAC == b.MAC && a.VLAN == b.VLAN && slices.Equal(a.AllowIP, b.AllowIP)
		})
}

// stillSealed reports whether a secret of the record is lost. A digest that is not the record's
// own is the mistake of an operator.
func stillSealed(old, open record.Record) (lost bool, err error) {
	was := old.Digests()
	for _, text := range []struct{ field, value string }{
		{"user_data", open.Spec.CloudInit.UserData}, {"network_config", open.Spec.CloudInit.NetworkConfig},
	} {
		if !spec.IsSealed(text.value) {
			continue
		}
		if !slices.Contains(was, text.value) {
			return false, &record.InputError{
				Field: "cloud_init " + text.field, Value: text.value,
				Want: "the text itself: this is the digest of a secret, as sledctl prints it, and not one of this instance",
			}
		}
		lost = true
	}
	return lost, nil
}
