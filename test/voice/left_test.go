package voice

// left is how many phrases each folder at the top still has.
func left() map[string]int {
	return map[string]int{
		"CHANGELOG.md": 37,
		"README.md":    1,
		"agent":        135,
		"commands":     333,
		"docs":         316,
		"engine":       298,
		"host":         50,
		"illumos":      50,
		"peer":         23,
		"propolis":     71,
		"sim":          225,
		"sled":         422,
		"test":         122,
		"vnic":         17,
		"zfs":          39,
		"zone":         27,
	}
}
