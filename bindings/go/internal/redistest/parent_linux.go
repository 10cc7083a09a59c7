package redistest

import "syscall"

// diesWithParent has a process end when the thread that has started it does.
func diesWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
