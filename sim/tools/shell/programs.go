package shell

import "path"

// ProgramName is the command that a path or a bare word names, if the
// directory is one that has commands.
func ProgramName(program string) (string, bool) {
	switch path.Dir(program) {
	case ".", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/lib":
		return path.Base(program), true
	}
	return "", false
}
