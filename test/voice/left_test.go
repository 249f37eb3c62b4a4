package voice

// left is how many phrases each folder at the top still has.
func left() map[string]int {
	return map[string]int{
		"CHANGELOG.md": 2,
		"README.md":    1,
		"agent":        2,
		"commands":     232,
		"docs":         57,
		"engine":       298,
		"illumos":      9,
		"peer":         23,
		"propolis":     71,
		"sim":          60,
		"sled":         12,
		"test":         122,
		"vnic":         17,
		"zfs":          39,
		"zone":         27,
	}
}
