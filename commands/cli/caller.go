package cli

import (
	"cmp"
	"os"
	"os/user"
	"regexp"
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

// argv is a command line as it may be kept: without what could be a secret. No
// flag takes one, but a command that reaches another sled, or an address, may have
// a password in it.
func argv(words []string) []string {
	kept := make([]string, len(words))
	for i, word := range words {
		flag, _, valued := strings.Cut(word, "=")
		switch {
		case strings.ContainsAny(word, "{\n"):
			kept[i] = "(a document)"
		case i > 0 && words[i-1] == "--to-command":
			kept[i] = "(a command)"
		case valued && flag == "--to-command":
			kept[i] = "--to-command=(a command)"
		case !strings.Contains(word, "://"):
			kept[i] = word
		default:
			kept[i] = regexp.MustCompile(`://[^/@]*@`).ReplaceAllString(word, "://...@")
			if address, _, asks := strings.Cut(kept[i], "?"); asks { // the signature of a download, say
				kept[i] = address + "?..."
			}
		}
	}
	return kept
}
