package zone

// UninstallDestroys says whether a brand's uninstall also destroys the
// zonepath's datasets and the snapshot that the zone was cloned from. sparse,
// ipkg and lipkg do (usr/src/lib/brand/shared/zone/uninstall.ksh); omicron1
// removes the files only (oxidecomputer/helios-omicron-brand).
func UninstallDestroys(brand string) bool {
	switch brand {
	case "sparse", "ipkg", "lipkg":
		return true
	}
	return false
}
