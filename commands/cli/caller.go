package cli

import (
	"cmp"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/engine/operation"
)

// caller is the user in whose name this process runs, as the environment completes
// it.
func caller(environ []string) operation.By {
	uid := os.Getuid()
	by := operation.By{User: userName(uid), UID: uid, Via: operation.ViaCommand}
	if Variable(environ, "SMF_FMRI") != "" {
		by.Via = operation.ViaService
	}
	before := cmp.Or(Variable(environ, "SUDO_USER"), Variable(environ, "LOGNAME"))
	if before != by.User {
		by.From = before
	}
	if client, _, _ := strings.Cut(Variable(environ, "SSH_CONNECTION"), " "); client != "" {
		by.From = strings.TrimPrefix(by.From+"@"+client, "@")
	}
	return by
}

// userName is the name of a user. root's is not looked up: it is the same
// everywhere, and most commands that change something are root's.
func userName(uid int) string {
	if uid == 0 {
		return "root"
	}
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}
