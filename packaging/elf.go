package main

import (
	"bytes"
	"debug/elf"
	"fmt"
)

// markSolaris says in the program's header whose system it is for. Go's linker writes
// System V's 0; illumos' own programs say Solaris, and pkg(7) and file(1) go by it.
func markSolaris(program []byte) ([]byte, error) {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return nil, fmt.Errorf("the program: %w", err)
	}
	if f.Class != elf.ELFCLASS64 || f.Machine != elf.EM_X86_64 || f.OSABI != elf.ELFOSABI_NONE && f.OSABI != elf.ELFOSABI_SOLARIS {
		return nil, fmt.Errorf("the program is %s, %s, %s: no program for illumos on amd64", f.Class, f.Machine, f.OSABI)
	}
	marked := bytes.Clone(program)
	marked[elf.EI_OSABI] = byte(elf.ELFOSABI_SOLARIS)
	return marked, nil
}
