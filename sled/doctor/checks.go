package doctor

import "slices"

// Checks lists all checks, in the order of the manual.
func Checks() []Check {
	return slices.Concat(systemChecks(), vmmChecks(), serverChecks(), storageChecks(), memoryChecks(), linkChecks(), ownerChecks(), brandChecks(), smfChecks())
}
