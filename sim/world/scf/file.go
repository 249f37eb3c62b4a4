package scf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// magic opens a repository file. A real one is an SQLite 2 database; this
// encoding is the simulation's own.
const magic = "** This file is a simulated SMF repository **\n"

// ErrNotRepository is what Decode says of anything else.
var ErrNotRepository = errors.New("not a repository")

// Encode is the repository as a file.
func (r *Repository) Encode() ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode repository: %w", err)
	}
	return append([]byte(magic), append(body, '\n')...), nil
}

// Decode reads a repository file.
func Decode(data []byte) (*Repository, error) {
	body, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok {
		return nil, ErrNotRepository
	}
	r := &Repository{}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRepository, err)
	}
	return r, nil
}
