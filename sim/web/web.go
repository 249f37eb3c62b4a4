// Package web is a simulated web server: Go's own over a directory, with ranges and validators as nginx has them. It keeps
// nothing of its own.
package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"

	"github.com/sledctl/sledctl/sim/world"
)

// Handler answers for the world's web server. If there is none, the connection is broken off.
func Handler(w *world.World) http.Handler { return server{w} }

type server struct{ world *world.World }

// ServeHTTP is part of http.Handler.
func (s server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var dir string
	err := s.world.View(r.Context(), func(tx *world.Tx) error {
		if tx.State.Web != nil {
			dir = tx.State.Web.Dir
		}
		return nil
	})
	f, ferr := s.fault(r)
	if err != nil || ferr != nil || dir == "" {
		panic(http.ErrAbortHandler)
	}
	switch {
	case f != nil && f.Name == world.FaultWebFail:
		http.Error(w, http.StatusText(f.Exit), f.Exit)
		return
	case f != nil && f.Name == world.FaultWebHTML:
		_, _ = io.WriteString(w, "<!DOCTYPE html><html><head><title>Welcome to the network</title></head></html>\n")
		return
	}
	file, info, err := open(dir, r.URL.Path)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer file.Close()
	// As nginx makes it: of the time and the size (ngx_http_set_etag in src/http/ngx_http_core_module.c).
	w.Header().Set("ETag", fmt.Sprintf(`"%x-%x"`, info.ModTime().Unix(), info.Size()))
	w.Header().Set("Content-Type", "application/octet-stream")
	if f != nil {
		w = &half{ResponseWriter: w, ctx: r.Context(), stall: f.Name == world.FaultWebStall}
	}
	http.ServeContent(w, r, "", info.ModTime(), file)
}

func (s server) fault(r *http.Request) (f *world.Fault, err error) {
	if armed, err := s.world.FaultsArmed(r.Context()); err != nil || !armed {
		return nil, err
	}
	err = s.world.Update(r.Context(), func(tx *world.Tx) error {
		f = tx.TakeFault([]string{"web", r.Method, r.URL.Path}, world.FaultWebFail, world.FaultWebHTML, world.FaultWebCut, world.FaultWebStall)
		return nil
	})
	return f, err
}

// open opens a regular file below the directory.
func open(dir, name string) (*os.File, os.FileInfo, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	file, err := root.Open(path.Clean("." + path.Clean("/"+name)))
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = os.ErrNotExist
	}
	if err != nil {
		_ = file.Close()
	}
	return file, info, err
}

// half sends half of a body, and then breaks off, or nothing more.
type half struct {
	http.ResponseWriter
	ctx   context.Context
	stall bool
	left  int64
	begun bool
}

// Write is part of http.ResponseWriter.
func (h *half) Write(p []byte) (int, error) {
	if !h.begun {
		var all int64
		_, _ = fmt.Sscan(h.Header().Get("Content-Length"), &all)
		h.begun, h.left = true, all/2
	}
	n, err := h.ResponseWriter.Write(p[:min(int64(len(p)), h.left)])
	h.left -= int64(n)
	if err != nil || h.left > 0 {
		return n, err
	}
	_ = http.NewResponseController(h.ResponseWriter).Flush()
	if h.stall {
		<-h.ctx.Done()
	}
	panic(http.ErrAbortHandler)
}
